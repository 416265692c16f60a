"""Learned scale per channel on a residual branch."""

import torch
from torch import Tensor, nn


class LayerScale(nn.Module):
    """Multiply the last dimension by a learned vector.

    Args:
        embed_dims: length of the vector.
        init_value: its value before training.
    """

    def __init__(self, embed_dims: int, init_value: float = 1e-4) -> None:
        super().__init__()
        self.init_value = init_value
        self.weight = nn.Parameter(torch.full((embed_dims,), init_value))

    def reset_parameters(self) -> None:
        nn.init.constant_(self.weight, self.init_value)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight
