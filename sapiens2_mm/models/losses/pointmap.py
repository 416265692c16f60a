"""Losses of pointmaps."""

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, finite_target, masked_target, mean_over_pixels
from .masked import masked_l1


def intrinsics_error(points: Tensor, intrinsics: Tensor) -> Tensor:
    """How far each point is from the ray of its pixel, at its own depth.

    Args:
        points: (B, 3, H, W) in the camera frame, any unit.
        intrinsics: (B, 3, 3), pixel centers at integer coordinates.

    Returns:
        (B, 1, H, W): ``|X - (col - cx) Z / fx| + |Y - (row - cy) Z / fy|``.
    """
    height, width = points.shape[-2:]
    x, y, z = points.unbind(1)
    col = torch.arange(width, device=points.device, dtype=points.dtype)
    row = torch.arange(height, device=points.device, dtype=points.dtype)[:, None]
    fx, fy = intrinsics[:, 0, 0, None, None], intrinsics[:, 1, 1, None, None]
    cx, cy = intrinsics[:, 0, 2, None, None], intrinsics[:, 1, 2, None, None]
    error = (x - (col - cx) * z / fx).abs() + (y - (row - cy) * z / fy).abs()
    return error[:, None]


@MODELS.register_module()
class IntrinsicsLoss(DenseLoss):
    """``intrinsics_error`` of the prediction, averaged over valid pixels.

    Source: Sapiens2 official repository, the intrinsics consistency loss of the
    pointmap task.
    """

    default_name = 'loss_intrinsics'

    def compute(
        self,
        pred: Tensor,
        target: Tensor,
        mask: Tensor,
        intrinsics: Tensor,
        scale: Tensor,
    ) -> Tensor:
        """Arguments as ``PointmapHead`` hands them to ``loss_geometry``."""
        return mean_over_pixels(intrinsics_error(pred, intrinsics), mask)


def pointmap_normals(points: Tensor) -> Tensor:
    """Normal at each pixel, from the differences to its right and lower neighbor.

    Args:
        points: (B, 3, H, W) in meters, X right, Y down, Z forward.

    Returns:
        (B, 3, H, W), not normalized; the last column and row use reflected
        neighbors. The vector points away from the camera on a visible surface.
    """
    padded = F.pad(points, (0, 1, 0, 1), mode='reflect')
    right = padded[..., :-1, 1:] - points
    down = padded[..., 1:, :-1] - points
    # millimeter steps would vanish under the floor of the normalization
    return torch.cross(right * 100, down * 100, dim=1)


@MODELS.register_module()
class PointmapNormalLoss(DenseLoss):
    """Cosine plus mean absolute difference between two pointmaps' normals.

    Args:
        neighbors_in_mask: count a pixel only if the neighbors that its normal is
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
        target_normal = pointmap_normals(finite_target(target, mask) / scale)
        # not "> 1e-6": a target that is not finite must show
        valid = mask & ~(target_normal.norm(dim=1, keepdim=True) <= 1e-6)
        if self.neighbors_in_mask:
            padded = F.pad(mask.float(), (0, 1, 0, 1), mode='reflect') > 0
            valid = valid & padded[..., :-1, 1:] & padded[..., 1:, :-1]
        pred_normal = F.normalize(pointmap_normals(pred / scale), dim=1, eps=1e-6)
        target_normal = F.normalize(target_normal, dim=1, eps=1e-6)
        cosine = 1 - (pred_normal * target_normal).sum(1, keepdim=True)
        difference = (pred_normal - target_normal).abs().mean(1, keepdim=True)
        return mean_over_pixels(cosine + difference, valid)


@MODELS.register_module()
class ScaleL1Loss(DenseLoss):
    """Mean absolute difference between (B, 1) scales.

    Source: Sapiens2 official repository, the scale loss of the pointmap task.
    """

    default_name = 'loss_scale'

    def compute(self, pred: Tensor, target: Tensor) -> Tensor:
        return (pred - target).abs().mean()


def centered(points: Tensor, mask: Tensor) -> Tensor:
    """Points relative to the centroid of each sample's valid points.

    Args:
        points: (B, 3, H, W).
        mask: (B, 1, H, W) bool.

    Returns:
        (B, 3, H, W).
    """
    total = torch.where(mask, points, torch.zeros_like(points)).sum((2, 3), True)
    return points - total / (mask.sum((2, 3), True) + 1e-6)


@MODELS.register_module()
class ShiftInvariantL1Loss(DenseLoss):
    """``masked_l1`` after removing each cloud's own centroid.

    Source: Sapiens2 official repository, the shift-invariant loss of the pointmap task.
    """

    default_name = 'loss_shift_invariant'

    def compute(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        target = centered(masked_target(target, mask), mask)
        return masked_l1(centered(pred, mask), target, mask)
