"""Cosine loss of surface normals."""

import torch.nn.functional as F
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, masked_target, mean_over_pixels


def normal_cosine(pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """One minus the cosine between two directions, averaged over valid pixels.

    Args:
        pred: (B, 3, H, W), any length.
        target: (B, 3, H, W), any length.
        mask: (B, 1, H, W) bool, True where ``target`` is known.

    Returns:
        Scalar in [0, 2]; 0 if no pixel is valid.
    """
    pred = F.normalize(pred, dim=1, eps=1e-6)
    target = F.normalize(masked_target(target, mask), dim=1, eps=1e-6)
    return mean_over_pixels(1 - (pred * target).sum(1, keepdim=True), mask)


@MODELS.register_module()
class NormalCosineLoss(DenseLoss):
    """``normal_cosine`` as a loss.

    Source: Sapiens2 official repository, ``NormalCosineLoss``.
    """

    default_name = 'loss_cosine'

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        return normal_cosine(pred, target, mask)
