"""Local attention that turns a window of patches into one token."""

import torch
from torch import Tensor, nn

from .block import TransformerBlock

# Activations of a token in a block, in multiples of its channels: at the widest place
# of a pass, and what each block leaves for the backward pass.
_PEAK, _KEPT = 20, 26


class WindowTokenizer(nn.Module):
    """Pool windows of patches by a class token that attends to them.

    Each window of ``window_size x window_size`` patches gets the shared class token in
    front and learned local positions, passes the blocks on its own, and leaves only
    its class token. The blocks have full multi-head attention without query/key norm,
    layer scale or rotary positions, and ``4 * embed_dims`` hidden channels.

    Windows pass the blocks in chunks that fit into a memory budget. Windows are
    independent, so the budget changes no result. A chunk while training counts as if
    its blocks were recomputed in the backward pass.

    Args:
        embed_dims: C.
        num_heads: attention heads.
        num_layers: number of blocks.
        window_size: window side in patches.
        max_bytes: activations of one chunk may take about so much memory.

    Source: Sapiens2 (arXiv 2604.21681) section 4 and its released backbone.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        num_layers: int,
        window_size: int,
        max_bytes: int = 2**30,
    ) -> None:
        super().__init__()
        self.window_size = window_size
        self.max_bytes = max_bytes
        self.w_cls = nn.Parameter(torch.zeros(1, 1, embed_dims))
        self.local_pos_embed = nn.Parameter(
            torch.zeros(1, 1 + window_size**2, embed_dims)
        )
        self.blocks = nn.ModuleList(
            TransformerBlock(
                embed_dims,
                num_heads,
                num_heads,
                4 * embed_dims,
                qk_norm=False,
                layer_scale_init_value=0,
            )
            for _ in range(num_layers)
        )

    def forward(
        self, x: Tensor, grid: tuple[int, int], ids_keep: Tensor | None = None
    ) -> tuple[Tensor, tuple[int, int]]:
        """Reduce the tokens of a patch grid by ``window_size ** 2``.

        Args:
            x: (B, h*w, C) patch tokens, row by row.
            grid: (h, w), both multiples of ``window_size``.
            ids_keep: (B, n) indices of the windows wanted; None for all. Windows do
                not see each other, so the others are not computed.

        Returns:
            (B, n, C) window tokens in the dtype of ``x``, and the grid of all windows
            (h / window_size, w / window_size).
        """
        size = self.window_size
        batch, _, dims = x.shape
        h, w = grid[0] // size, grid[1] // size
        windows = x.view(batch, h, size, w, size, dims).transpose(2, 3)
        windows = windows.reshape(batch, h * w, size * size, dims)
        if ids_keep is not None:
            rows = torch.arange(batch, device=x.device)[:, None]
            windows = windows[rows, ids_keep]  # (B, n, size*size, C)
        windows = windows.flatten(0, 1)
        # A traced graph must not depend on the number of windows.
        traced = torch.compiler.is_compiling()
        chunks = (windows,) if traced else windows.split(self.chunk_size(windows))
        tokens = [self._pool(chunk) for chunk in chunks]
        return torch.cat(tokens).view(batch, -1, dims), (h, w)

    def chunk_size(self, windows: Tensor) -> int:
        """How many of (M, size*size, C) windows pass at once."""
        widths = _PEAK
        if self.training and torch.is_grad_enabled():
            widths += _KEPT
        per_window = self.local_pos_embed.numel() * windows.element_size() * widths
        return max(1, self.max_bytes // per_window)

    def _pool(self, windows: Tensor) -> Tensor:
        """(M, size*size, C) to (M, C)."""
        prefix = self.w_cls.expand(windows.shape[0], -1, -1)
        x = torch.cat((prefix, windows), dim=1) + self.local_pos_embed
        for block in self.blocks:
            x = block(x)
        return x[:, 0].to(windows.dtype)
