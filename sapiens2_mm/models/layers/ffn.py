"""Gated feed-forward network."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


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
        gate, up = self.w12(x).chunk(2, dim=-1)
        gate = F.silu(gate, inplace=not torch.is_grad_enabled())
        return self.w3(gate * up)
