"""Wing loss on heatmaps, as an example of an own loss."""

import math

from torch import Tensor, nn

from .registry import MODELS


@MODELS.register_module()
class WingLoss(nn.Module):
    """Logarithmic near zero, linear far away.

    Args:
        width: error where the two parts meet.
        curvature: smaller is steeper near zero.
        loss_weight: factor on the result.

    Source: Feng et al., Wing Loss (CVPR 2018), equation 5, on heatmap values.
    """

    def __init__(
        self, width: float = 0.5, curvature: float = 0.1, loss_weight: float = 1.0
    ) -> None:
        super().__init__()
        self.width = width
        self.curvature = curvature
        self.loss_weight = loss_weight

    def forward(self, pred: Tensor, target: Tensor, weights: Tensor) -> Tensor:
        """Mean over all elements.

        Args:
            pred: (B, K, H, W) heatmaps.
            target: (B, K, H, W).
            weights: (B, K).
        """
        error = (pred.float() - target).abs()
        near = self.width * (1 + error / self.curvature).log()
        far = error - self.width * (1 - math.log(1 + self.width / self.curvature))
        loss = near.where(error < self.width, far)
        return self.loss_weight * (loss * weights[..., None, None]).mean()
