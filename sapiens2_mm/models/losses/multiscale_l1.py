"""L1 loss on an enlarged map."""

import torch.nn.functional as F
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, masked_target
from .masked_l1 import masked_l1


def multiscale_l1(
    pred: Tensor, target: Tensor, mask: Tensor, scale_factor: int
) -> Tensor:
    """``masked_l1`` after bilinear enlargement of both maps.

    Args:
        pred: (B, C, H, W).
        target: (B, C, H, W).
        mask: (B, 1, H, W) bool; enlarged by nearest neighbour.
        scale_factor: enlargement of both sides.

    Returns:
        Scalar; 0 if no pixel is valid.
    """
    pred, target = (
        F.interpolate(x, scale_factor=scale_factor, mode='bilinear')
        for x in (pred, masked_target(target, mask))
    )
    mask = F.interpolate(mask.float(), scale_factor=scale_factor, mode='nearest') > 0
    return masked_l1(pred, target, mask)


@MODELS.register_module()
class MultiscaleL1Loss(DenseLoss):
    """``multiscale_l1`` as a loss.

    Args:
        scale_factor: enlargement of both sides.
        kwargs: see ``DenseLoss``.

    Source: Sapiens2 official repository, ``MultiscaleL1Loss``.
    """

    default_name = 'loss_multiscale_l1'

    def __init__(self, scale_factor: int = 2, **kwargs) -> None:
        super().__init__(**kwargs)
        self.scale_factor = scale_factor

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        return multiscale_l1(pred, target, mask, self.scale_factor)
