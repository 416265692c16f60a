"""Gated feed-forward network."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Tokens per pass on a CPU without gradients. The hidden activations of one pass stay
# in the cache; all at once (75 MB at 1024x768 for the smallest model) they do not.
_CPU_ROWS = 1024


class SwiGLU(nn.Module):
    """``w3(silu(gate) * up)``, gate and up from one fused projection, gate first.

    Args:
        embed_dims: input and output channels.
        feedforward_channels: channels of gate and of up.
    """

    def __init__(self, embed_dims: int, feedforward_channels: int) -> None:
        super().__init__()
        self.w12 = nn.Linear(embed_dims, 2 * feedforward_channels)
        self.w3 = nn.Linear(feedforward_channels, embed_dims)

    def forward(self, x: Tensor) -> Tensor:
        """(..., C) to (..., C); every token on its own."""
        plain = torch.is_grad_enabled() or torch.compiler.is_compiling()
        plain = plain or torch.jit.is_tracing()  # with and without gradients alike
        if plain or x.device.type != 'cpu':
            return self._mix(x, inplace=not plain)
        rows = x.flatten(0, -2)
        if len(rows) <= _CPU_ROWS:
            return self._mix(x, inplace=True)
        parts = rows.tensor_split(-(-len(rows) // _CPU_ROWS))
        return torch.cat([self._mix(part, inplace=True) for part in parts]).view(
            x.shape
        )

    def _mix(self, x: Tensor, inplace: bool) -> Tensor:
        gate, up = self.w12(x).chunk(2, dim=-1)
        gate = F.silu(gate, inplace=inplace)
        return self.w3(gate * up)
