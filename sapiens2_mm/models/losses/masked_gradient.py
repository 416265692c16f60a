"""Loss of the spatial gradient of a map."""

from typing import Literal

import torch
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, masked_target, mean_over_pixels


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
