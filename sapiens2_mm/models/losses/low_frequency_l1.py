"""Loss of the local mean of a map."""

import torch.nn.functional as F
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, masked_target
from .masked_l1 import masked_l1


def local_mean(values: Tensor, mask: Tensor, window: int) -> Tensor:
    """Mean of the valid pixels around each pixel.

    Values and mask are averaged over ``window`` x ``window`` cells, enlarged back
    bilinearly, and divided.

    Args:
        values: (B, C, H, W), zero where ``mask`` is False.
        mask: (B, 1, H, W) bool.
        window: side of a cell in pixels; H and W are multiples of it.

    Returns:
        (B, C, H, W).
    """
    size = values.shape[-2:]
    values, weight = (
        F.interpolate(F.avg_pool2d(x, window), size=size, mode='bilinear')
        for x in (values, mask.to(values.dtype))
    )
    return values / (weight + 1e-6)


@MODELS.register_module()
class LowFrequencyL1Loss(DenseLoss):
    """``masked_l1`` between the local means of prediction and target.

    Args:
        window: side of the averaging cell in pixels; the input sides must be
            multiples of it.
        kwargs: see ``DenseLoss``.

    Source: Sapiens2 official repository, albedo task, where no config enables it.
    """

    default_name = 'loss_low_frequency'

    def __init__(self, window: int = 32, **kwargs) -> None:
        super().__init__(**kwargs)
        self.window = window

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        height, width = pred.shape[-2:]
        if height % self.window or width % self.window:
            raise ValueError(
                f'LowFrequencyL1Loss: the map of {height}x{width} pixels must be a '
                f'multiple of window {self.window}; choose another window'
            )
        pred, target = (
            local_mean(masked_target(x, mask), mask, self.window)
            for x in (pred, target)
        )
        return masked_l1(pred, target, mask)
