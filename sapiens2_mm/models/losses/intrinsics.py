"""Loss that ties X and Y of a pointmap to its Z through the camera."""

import torch
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_loss import DenseLoss, mean_over_pixels


def intrinsics_error(points: Tensor, intrinsics: Tensor) -> Tensor:
    """How far each point is from the ray of its pixel, at its own depth.

    Args:
        points: (B, 3, H, W) in the camera frame, any unit.
        intrinsics: (B, 3, 3), pixel centres at integer coordinates.

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
