"""L1 loss on an enlarged map."""

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, finite_target, mean_over_pixels


def multiscale_l1(
    pred: Tensor,
    target: Tensor,
    mask: Tensor,
    scale_factor: int,
    within_mask: bool = False,
) -> Tensor:
    """``masked_l1`` after bilinear enlargement of both maps.

    Args:
        pred: (B, C, H, W).
        target: (B, C, H, W).
        mask: (B, 1, H, W) bool; enlarged by nearest neighbour.
        scale_factor: enlargement of both sides.
        within_mask: set both maps to 0 outside the mask first, so that the enlarged
            pixels along its border do not mix with what lies outside.

    Returns:
        Scalar; 0 if no pixel is valid.
    """
    error = pred - finite_target(target)
    if within_mask:
        error = torch.where(mask, error, torch.zeros_like(error))
    error = F.interpolate(error, scale_factor=scale_factor, mode='bilinear')
    mask = F.interpolate(mask.float(), scale_factor=scale_factor, mode='nearest') > 0
    return mean_over_pixels(error.abs(), mask)


@MODELS.register_module()
class MultiscaleL1Loss(DenseLoss):
    """``multiscale_l1`` as a loss.

    Args:
        scale_factor: enlargement of both sides.
        within_mask: see ``multiscale_l1``. The reference mixes.
        kwargs: see ``DenseLoss``.

    Source: Sapiens2 official repository, ``MultiscaleL1Loss``.
    """

    default_name = 'loss_multiscale_l1'

    def __init__(
        self, scale_factor: int = 2, within_mask: bool = False, **kwargs
    ) -> None:
        super().__init__(**kwargs)
        self.scale_factor = scale_factor
        self.within_mask = within_mask

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        return multiscale_l1(pred, target, mask, self.scale_factor, self.within_mask)
