"""Losses of any map over its valid pixels."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, finite_target, masked_target, mean_over_pixels


def masked_l1(pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Absolute difference, summed over channels, averaged over valid pixels.

    Args:
        pred: (B, C, H, W).
        target: (B, C, H, W).
        mask: (B, 1, H, W) bool, True where ``target`` is known.

    Returns:
        Scalar; 0 if no pixel is valid.
    """
    return mean_over_pixels((pred - masked_target(target, mask)).abs(), mask)


@MODELS.register_module()
class MaskedL1Loss(DenseLoss):
    """``masked_l1`` as a loss.

    Source: Sapiens2 official repository, ``L1Loss``.
    """

    default_name = 'loss_l1'

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        return masked_l1(pred, target, mask)


def masked_l2(pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Squared Euclidean distance, averaged over valid pixels.

    Args:
        pred: (B, C, H, W).
        target: (B, C, H, W).
        mask: (B, 1, H, W) bool, True where ``target`` is known.

    Returns:
        Scalar; 0 if no pixel is valid.
    """
    return mean_over_pixels((pred - masked_target(target, mask)).square(), mask)


@MODELS.register_module()
class MaskedL2Loss(DenseLoss):
    """``masked_l2`` as a loss: the data term of the paper's dense objectives.

    The released configs use L1 instead.

    Source: Sapiens2 paper, post-training objectives.
    """

    default_name = 'loss_l2'

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        return masked_l2(pred, target, mask)


def gradient_l2(pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Squared error of forward differences along x and along y.

    A difference counts when both of its pixels are valid. Each axis is summed over
    channels and averaged over its valid differences.

    Args:
        pred: (B, C, H, W).
        target: (B, C, H, W).
        mask: (B, 1, H, W) bool, True where ``target`` is known.

    Returns:
        (2,): the error along x and along y; 0 where no difference is valid.
    """
    error = pred - masked_target(target, mask)
    terms = []
    for dim in (3, 2):
        size = error.shape[dim] - 1
        difference = error.narrow(dim, 1, size) - error.narrow(dim, 0, size)
        valid = mask.narrow(dim, 1, size) & mask.narrow(dim, 0, size)
        terms.append(mean_over_pixels(difference.square(), valid))
    return torch.stack(terms)


@MODELS.register_module()
class MaskedGradientLoss(DenseLoss):
    """``gradient_l2`` as a loss.

    Args:
        axes: ``'sum'`` adds the errors along x and y (normals), ``'mean'`` averages
            them (albedo).
        kwargs: see ``DenseLoss``.

    Source: Sapiens2 official repository, the gradient losses of the normal and albedo
    tasks; squared there too, despite their names.
    """

    default_name = 'loss_gradient'

    def __init__(self, axes: Literal['sum', 'mean'] = 'sum', **kwargs) -> None:
        super().__init__(**kwargs)
        if axes not in ('sum', 'mean'):
            raise ValueError(
                f"MaskedGradientLoss: axes must be 'sum' or 'mean', got {axes!r}"
            )
        self.axes = axes

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        terms = gradient_l2(pred, target, mask)
        return terms.sum() if self.axes == 'sum' else terms.mean()


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
        mask: (B, 1, H, W) bool; enlarged by nearest neighbor.
        scale_factor: enlargement of both sides.
        within_mask: set both maps to 0 outside the mask first, so that the enlarged
            pixels along its border do not mix with what lies outside.

    Returns:
        Scalar; 0 if no pixel is valid.
    """
    error = pred - finite_target(target, mask)
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
