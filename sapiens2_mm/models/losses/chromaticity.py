"""Loss of the colour ratio of an albedo, blind to brightness."""

from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss
from .masked_l1 import masked_l1


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
