"""L1 loss over valid pixels."""

from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, masked_target, mean_over_pixels


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
