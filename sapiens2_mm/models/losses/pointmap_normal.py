"""Loss of the surface normals that follow from a pointmap."""

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, finite_target, mean_over_pixels


def pointmap_normals(points: Tensor) -> Tensor:
    """Normal at each pixel, from the differences to its right and lower neighbour.

    Args:
        points: (B, 3, H, W) in metres, X right, Y down, Z forward.

    Returns:
        (B, 3, H, W), not normalised; the last column and row use reflected
        neighbours. The vector points away from the camera on a visible surface.
    """
    padded = F.pad(points, (0, 1, 0, 1), mode='reflect')
    right = padded[..., :-1, 1:] - points
    down = padded[..., 1:, :-1] - points
    # millimetre steps would vanish under the floor of the normalisation
    return torch.cross(right * 100, down * 100, dim=1)


@MODELS.register_module()
class PointmapNormalLoss(DenseLoss):
    """Cosine plus mean absolute difference between two pointmaps' normals.

    Args:
        neighbors_in_mask: count a pixel only if the neighbours that its normal is
            made of are valid too. The reference does not ask for that, so its normals
            along the outline of a person involve whatever lies outside the mask.
        kwargs: see ``DenseLoss``.

    Source: Sapiens2 official repository, the normal loss of the pointmap task.
    """

    default_name = 'loss_normal'

    def __init__(self, neighbors_in_mask: bool = False, **kwargs) -> None:
        super().__init__(**kwargs)
        self.neighbors_in_mask = neighbors_in_mask

    def compute(
        self,
        pred: Tensor,
        target: Tensor,
        mask: Tensor,
        intrinsics: Tensor,
        scale: Tensor,
    ) -> Tensor:
        """Arguments as ``PointmapHead`` hands them to ``loss_geometry``."""
        scale = scale[:, :, None, None]
        target_normal = pointmap_normals(finite_target(target) / scale)
        valid = mask & (target_normal.norm(dim=1, keepdim=True) > 1e-6)
        if self.neighbors_in_mask:
            padded = F.pad(mask.float(), (0, 1, 0, 1), mode='reflect') > 0
            valid = valid & padded[..., :-1, 1:] & padded[..., 1:, :-1]
        pred_normal = F.normalize(pointmap_normals(pred / scale), dim=1, eps=1e-6)
        target_normal = F.normalize(target_normal, dim=1, eps=1e-6)
        cosine = 1 - (pred_normal * target_normal).sum(1, keepdim=True)
        difference = (pred_normal - target_normal).abs().mean(1, keepdim=True)
        return mean_over_pixels(cosine + difference, valid)
