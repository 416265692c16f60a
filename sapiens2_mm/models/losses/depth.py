"""Scale-invariant logarithmic loss of depth."""

import torch
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, masked_target


def silog(
    pred: Tensor, target: Tensor, mask: Tensor, variance_focus: float, eps: float
) -> Tensor:
    """Spread of the log ratio between two depth maps.

    Per sample ``sqrt(mean(d^2) - variance_focus * mean(d)^2)`` over valid pixels, with
    ``d = log target - log pred``.

    Args:
        pred: (B, 1, H, W), positive.
        target: (B, 1, H, W), positive where valid.
        mask: (B, 1, H, W) bool, True where ``target`` is known.
        variance_focus: 1 ignores a common factor altogether, 0 not at all.
        eps: both maps are clamped to it from below; no gradient there.

    Returns:
        Scalar, the mean over the batch; a sample without valid pixels counts as 0.
    """
    target = masked_target(target, mask)
    log_ratio = target.clamp(min=eps).log() - pred.clamp(min=eps).log()
    log_ratio = torch.where(mask, log_ratio, torch.zeros_like(log_ratio))
    count = mask.sum((1, 2, 3)).clamp(min=1)
    mean = log_ratio.sum((1, 2, 3)) / count
    mean_square = log_ratio.square().sum((1, 2, 3)) / count
    # the square root has an infinite slope at 0, so it starts just above
    variance = mean_square - variance_focus * mean.square()
    root = variance.clamp(min=1e-12).sqrt()
    return torch.where(variance > 1e-12, root, variance).mean()


@MODELS.register_module()
class SILogLoss(DenseLoss):
    """``silog`` as a loss.

    Args:
        variance_focus: see ``silog``.
        eps: see ``silog``; 1e-4 in Sapiens2, 1e-6 in Sapiens.
        kwargs: see ``DenseLoss``.

    Source: Sapiens2 official repository, pointmap task; Sapiens, depth task.
    """

    default_name = 'loss_silog'

    def __init__(
        self, variance_focus: float = 0.5, eps: float = 1e-4, **kwargs
    ) -> None:
        super().__init__(**kwargs)
        self.variance_focus = variance_focus
        self.eps = eps

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        return silog(pred, target, mask, self.variance_focus, self.eps)
