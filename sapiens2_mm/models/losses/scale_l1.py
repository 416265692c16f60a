"""L1 loss of the canonical scale."""

from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss


@MODELS.register_module()
class ScaleL1Loss(DenseLoss):
    """Mean absolute difference between (B, 1) scales.

    Source: Sapiens2 official repository, the scale loss of the pointmap task.
    """

    default_name = 'loss_scale'

    def compute(self, pred: Tensor, target: Tensor) -> Tensor:
        return (pred - target).abs().mean()
