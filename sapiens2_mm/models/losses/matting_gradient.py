"""Loss of the edges of alpha mattes and their foreground colour."""

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, masked_target, mean_over_elements


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
        # outside the mask both maps are 0, so that no unknown colour leaks in
        pred, target = masked_target(pred, mask), masked_target(target, mask)
        difference = sobel_magnitude(pred) - sobel_magnitude(target)
        return mean_over_elements(difference.abs(), mask)
