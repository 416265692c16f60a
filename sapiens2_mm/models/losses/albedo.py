"""Losses of albedo."""

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, masked_target
from .masked import masked_l1


def chromaticity(rgb: Tensor) -> Tensor:
    """Share of each channel in the sum of the three; (B, 3, H, W) both ways."""
    return rgb / (rgb.sum(1, keepdim=True) + 1e-6)


@MODELS.register_module()
class ChromaticityLoss(DenseLoss):
    """L1 between the chromaticities of two albedos over valid pixels.

    The prediction is clamped to [0, 1] first and has no gradient outside.

    Source: Sapiens2 official repository, the chromaticity loss of the albedo task.
    """

    default_name = 'loss_chromaticity'

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        return masked_l1(chromaticity(pred.clamp(0, 1)), chromaticity(target), mask)


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
                f'multiple of window {self.window}'
            )
        pred, target = (
            local_mean(masked_target(x, mask), mask, self.window)
            for x in (pred, target)
        )
        return masked_l1(pred, target, mask)


def rgb_mean_l1(pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Absolute difference of the mean color over the valid pixels of each sample.

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
