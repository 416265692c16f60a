"""Decoder that reconstructs patches from the visible tokens."""

import torch
from mmengine.model import BaseModule
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.init import trunc_normal_

from sapiens2_mm.registry import MODELS

from ..layers.positions import sincos_positions
from .masking import TokenMask


class DecoderBlock(nn.Module):
    """Pre-norm transformer block with LayerNorm and a GELU network.

    Args:
        embed_dims: C.
        num_heads: attention heads.
        mlp_ratio: hidden channels of the network over C.
        norm_eps: of the norms.
    """

    def __init__(
        self, embed_dims: int, num_heads: int, mlp_ratio: float, norm_eps: float
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.ln1 = nn.LayerNorm(embed_dims, norm_eps)
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims)
        self.proj = nn.Linear(embed_dims, embed_dims)
        self.ln2 = nn.LayerNorm(embed_dims, norm_eps)
        hidden = int(mlp_ratio * embed_dims)
        self.ffn = nn.Sequential(
            nn.Linear(embed_dims, hidden), nn.GELU(), nn.Linear(hidden, embed_dims)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, C) to (B, N, C)."""
        qkv = self.qkv(self.ln1(x)).unflatten(2, (3, self.num_heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (B, heads, N, D)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(y.transpose(1, 2).flatten(2))
        return x + self.ffn(self.ln2(x))


@MODELS.register_module()
class MAEDecoder(BaseModule):
    """Puts visible tokens back on their grid and predicts the pixels of all patches.

    Masked places hold one learned token; all places get a fixed sine-cosine position.
    Storage tokens of the encoder are not passed in. Used while pretraining only.

    Args:
        in_channels: C of the encoder.
        out_channels: values of a patch, 3 * 16 * 16 for RGB patches of 16 pixels.
        embed_dims: width of the decoder, a multiple of 4 and of ``num_heads``.
        num_layers: blocks.
        num_heads: attention heads.
        mlp_ratio: hidden channels of a block's network over its width.
        use_cls_token: let the patches attend to the class token too; it has no
            position. MAE does; the paper's equation names visible patches only.
        norm_eps: of the norms; 1e-6 in MAE and the first Sapiens.
        init_cfg: mmengine's.

    Raises:
        ValueError: if ``embed_dims`` does not fit.

    Source: Sapiens2 (arXiv 2604.21681) A.1.1 for depth and width; the rest after MAE
        (arXiv 2111.06377).
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int = 768,
        embed_dims: int = 512,
        num_layers: int = 8,
        num_heads: int = 16,
        mlp_ratio: float = 4.0,
        use_cls_token: bool = False,
        norm_eps: float = 1e-5,
        init_cfg: dict | None = None,
    ) -> None:
        super().__init__(init_cfg)
        if embed_dims % 4 or embed_dims % num_heads:
            raise ValueError(f'{embed_dims=} is no multiple of 4 and of {num_heads=}')
        self.embed_dims = embed_dims
        self.use_cls_token = use_cls_token
        self.embed = nn.Linear(in_channels, embed_dims)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, embed_dims))
        self.blocks = nn.ModuleList(
            DecoderBlock(embed_dims, num_heads, mlp_ratio, norm_eps)
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(embed_dims, norm_eps)
        self.predict = nn.Linear(embed_dims, out_channels)
        self._positions: dict[tuple, Tensor] = {}

    def init_weights(self) -> None:
        """Matrices: truncated normal, std 0.02; biases 0; mask token: normal 0.02."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.LayerNorm):
                module.reset_parameters()
        nn.init.normal_(self.mask_token, std=0.02)
        super().init_weights()

    def forward(
        self,
        visible: Tensor,
        mask: TokenMask,
        grid: tuple[int, int],
        cls_token: Tensor | None = None,
    ) -> Tensor:
        """Predict all patches.

        Args:
            visible: (B, n, in_channels) encoded tokens in the order of
                ``mask.ids_keep``.
            mask: of the B images.
            grid: (rows, columns) of all N tokens.
            cls_token: (B, in_channels), needed with ``use_cls_token`` alone.

        Returns:
            (B, N, out_channels).
        """
        x = self.restore(self.embed(visible), mask)
        x = x + self._position(grid, x)
        if self.use_cls_token:
            x = torch.cat((x, self.embed(cls_token[:, None])), dim=1)
        for block in self.blocks:
            x = block(x)
        return self.predict(self.norm(x[:, : mask.mask.shape[1]]))

    def restore(self, visible: Tensor, mask: TokenMask) -> Tensor:
        """(B, n, C) visible tokens to (B, N, C) with the mask token elsewhere."""
        shape = (*mask.mask.shape, visible.shape[2])
        tokens = self.mask_token.to(visible.dtype).expand(shape)
        index = mask.ids_keep[:, :, None].expand_as(visible)
        return tokens.scatter(1, index, visible)

    def _position(self, grid: tuple[int, int], like: Tensor) -> Tensor:
        key = (grid, like.device, like.dtype)
        if key not in self._positions:
            self._positions = {key: sincos_positions(grid, self.embed_dims).to(like)}
        return self._positions[key]

    def __getstate__(self) -> dict:
        return {**self.__dict__, '_positions': {}}
