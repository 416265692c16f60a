"""Loss of the mean colour of an albedo."""

import torch
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, masked_target


def rgb_mean_l1(pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Absolute difference of the mean colour over the valid pixels of each sample.

    Args:
        pred: (B, C, H, W).
        target: (B, C, H, W).
        mask: (B, 1, H, W) bool, True where ``target`` is known.

    Returns:
        Scalar, the mean over channels and over the samples with valid pixels; 0 if
        there are none.
    """
    error = torch.where(mask, pred - masked_target(target, mask), 0.0)
    count = mask.sum((1, 2, 3))
    mean = error.sum((2, 3)) / count.clamp(min=1)[:, None]
    return mean.abs().mean(1).sum() / (count > 0).sum().clamp(min=1)


@MODELS.register_module()
class RGBMeanLoss(DenseLoss):
    """``rgb_mean_l1`` as a loss.

    The paper names a term on the mean RGB without a formula; this is our reading. The
    released configs have no such term.

    Source: Sapiens2 paper, albedo objective.
    """

    default_name = 'loss_rgb_mean'

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        return rgb_mean_l1(pred, target, mask)
