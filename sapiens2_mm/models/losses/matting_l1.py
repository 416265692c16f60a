"""L1 loss of alpha mattes and their foreground colour."""

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
