"""Target heatmaps that need not be made."""

from typing import NamedTuple

import torch
from torch import Tensor


class SeparableHeatmaps(NamedTuple):
    """Heatmaps (B, K, H, W) as products of one profile per axis.

    A Gaussian and its square window are separable, and few rows of a map are not 0.
    A loss that knows this reads and writes no target of the size of the prediction.

    Attributes:
        down: (B, K, H) float32, >= 0.
        across: (B, K, W) float32, >= 0.
        rows: (B, K, R) int64, different rows of each map; all others are 0.
    """

    down: Tensor
    across: Tensor
    rows: Tensor

    @property
    def shape(self) -> torch.Size:
        """(B, K, H, W)."""
        return torch.Size((*self.down.shape, self.across.shape[-1]))

    def dense(self) -> Tensor:
        """The heatmaps, (B, K, H, W)."""
        return self.down.unsqueeze(-1) * self.across.unsqueeze(-2)

    def strips(self) -> Tensor:
        """The heatmaps at ``rows``, (B, K, R, W)."""
        return self.down.gather(-1, self.rows).unsqueeze(-1) * self.across.unsqueeze(-2)

    def maximum(self) -> tuple[Tensor, Tensor]:
        """``heatmap_maximum`` of ``dense()``, equal to the last bit."""
        values, y = (self.down * self.across.amax(-1, keepdim=True)).max(-1)
        height = self.down.gather(-1, y.unsqueeze(-1))
        x = (height * self.across).argmax(-1)
        return torch.stack((x, y), dim=-1), values
