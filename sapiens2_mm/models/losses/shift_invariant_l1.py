"""L1 loss of a point cloud, blind to its position."""

import torch
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, masked_target
from .masked_l1 import masked_l1


def centred(points: Tensor, mask: Tensor) -> Tensor:
    """Points relative to the centroid of each sample's valid points.

    Args:
        points: (B, 3, H, W).
        mask: (B, 1, H, W) bool.

    Returns:
        (B, 3, H, W).
    """
    total = torch.where(mask, points, torch.zeros_like(points)).sum((2, 3), True)
    return points - total / (mask.sum((2, 3), True) + 1e-6)


@MODELS.register_module()
class ShiftInvariantL1Loss(DenseLoss):
    """``masked_l1`` after removing each cloud's own centroid.

    Source: Sapiens2 official repository, the shift-invariant loss of the pointmap task.
    """

    default_name = 'loss_shift_invariant'

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        target = centred(masked_target(target, mask), mask)
        return masked_l1(centred(pred, mask), target, mask)
