"""Losses of alpha mattes and their foreground color."""

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, masked_target, mean_over_elements


@MODELS.register_module()
class MattingL1Loss(DenseLoss):
    """Mean absolute difference.

    Source: Sapiens2 official repository, matting task.
    """

    default_name = 'loss_l1'

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        return mean_over_elements((pred - masked_target(target, mask)).abs(), mask)


def sobel_magnitude(values: Tensor) -> Tensor:
    """Length of the 3x3 Sobel gradient, per channel; (B, C, H, W) both ways."""
    channels = values.shape[1]
    kernel = values.new_tensor([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    kernels = torch.stack([kernel, kernel.T]).repeat(channels, 1, 1)[:, None]
    padded = F.pad(values, (1, 1, 1, 1), mode='reflect')
    gradient = F.conv2d(padded, kernels, groups=channels)  # (B, 2C, H, W)
    gradient = gradient.unflatten(1, (channels, 2))
    return (gradient.square().sum(2) + 1e-6).sqrt()


@MODELS.register_module()
class MattingGradientLoss(DenseLoss):
    """Mean absolute difference of the Sobel gradient's length.

    Source: Sapiens2 official repository, matting task.
    """

    default_name = 'loss_gradient'

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        # outside the mask both maps are 0, so that no unknown color leaks in
        pred, target = masked_target(pred, mask), masked_target(target, mask)
        difference = sobel_magnitude(pred) - sobel_magnitude(target)
        return mean_over_elements(difference.abs(), mask)


def blur(values: Tensor) -> Tensor:
    """5x5 binomial blur with reflected borders; (B, C, H, W) both ways."""
    channels = values.shape[1]
    taps = values.new_tensor([1, 4, 6, 4, 1]) / 16
    kernel = torch.outer(taps, taps).repeat(channels, 1, 1, 1)
    return F.conv2d(
        F.pad(values, (2, 2, 2, 2), mode='reflect'), kernel, groups=channels
    )


def laplacian_pyramid(values: Tensor, levels: int) -> list[Tensor]:
    """Differences between successive blurred halvings, finest first."""
    pyramid = []
    for _ in range(levels):
        small = F.avg_pool2d(blur(values), 2, ceil_mode=True)
        large = F.interpolate(small, size=values.shape[-2:], mode='bilinear')
        pyramid.append(values - large)
        values = small
    return pyramid


@MODELS.register_module()
class MattingLaplacianLoss(DenseLoss):
    """Absolute difference of Laplacian pyramids, level n weighted by 2^n / levels.

    The reference's pyramid kernel is not published; this one uses the usual 5x5
    binomial.

    Args:
        levels: number of halvings; each side needs more than ``2^levels`` pixels, as
            the blur reflects two of them at the coarsest level.
        kwargs: see ``DenseLoss``.

    Source: Sapiens2 official repository, matting task.
    """

    default_name = 'loss_laplacian'

    def __init__(self, levels: int = 5, **kwargs) -> None:
        super().__init__(**kwargs)
        self.levels = levels

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        side, levels = min(pred.shape[-2:]), self.levels
        if side <= 2**levels:
            raise ValueError(f'{levels=} need sides > {2**levels} pixels, got {side}')
        difference = masked_target(pred, mask) - masked_target(target, mask)
        loss = pred.new_zeros(())
        for level, band in enumerate(laplacian_pyramid(difference, self.levels)):
            loss = loss + 2**level * band.abs().mean()
        return loss / self.levels
