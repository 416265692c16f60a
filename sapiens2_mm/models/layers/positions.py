"""Fixed positions of patches."""

import torch
from torch import Tensor


def sincos_positions(grid: tuple[int, int], dims: int) -> Tensor:
    """Fixed 2-D sine-cosine positions of a rectangular grid.

    Args:
        grid: (rows, columns).
        dims: C, a multiple of 4: sine and cosine of the row, then of the column.

    Returns:
        (rows * columns, C) float32, row by row.
    """
    frequencies = 10_000.0 ** -(torch.arange(dims // 4) / (dims // 4))
    row, column = torch.meshgrid(*(torch.arange(float(n)) for n in grid), indexing='ij')
    angles = [axis.reshape(-1, 1) * frequencies for axis in (row, column)]
    return torch.cat([f(a) for a in angles for f in (torch.sin, torch.cos)], dim=1)
