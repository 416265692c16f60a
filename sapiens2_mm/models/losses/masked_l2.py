"""L2 loss over valid pixels."""

from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, masked_target, mean_over_pixels


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
