"""Targets of dense regression."""

from typing import Any

import numpy as np

from sapiens2_mm.registry import TRANSFORMS

from .base import Transform


def unproject(depth: np.ndarray, intrinsics: np.ndarray) -> np.ndarray:
    """Points in the camera frame.

    Args:
        depth: (H, W), Z at each pixel.
        intrinsics: (3, 3), pixel centers at integers.

    Returns:
        (H, W, 3) float32 of (X, Y, Z), in the unit of ``depth``.
    """
    height, width = depth.shape
    cols, rows = np.arange(width), np.arange(height)[:, None]
    points = np.empty((height, width, 3), np.float32)
    for axis, (along_x, along_y, offset) in enumerate(np.linalg.inv(intrinsics)):
        rays = along_x * cols + (along_y * rows + offset)
        np.multiply(rays, depth, out=points[..., axis], casting='same_kind')
    return points


@TRANSFORMS.register_module()
class PointmapTarget(Transform):
    """Points from depth and camera, and the scale of the canonical camera.

    Goes after the geometric transforms.

    Required keys: ``gt_depth`` (meters), ``map_intrinsics``, ``intrinsics``.
    Set keys: ``gt_pointmap`` (H, W, 3) in meters, by the camera of the maps;
    ``gt_scale`` (1,): canonical focal length / fx of the network input.

    Args:
        canonical_focal: focal length of the canonical camera in pixels.
        min_canonical_depth: drop a training sample that has a valid point nearer than
            this in canonical space; None keeps all.

    Source: Sapiens2 official repository, pointmap pipeline.
    """

    at_inference = 'skip'

    def __init__(
        self,
        canonical_focal: float = 768.0,
        min_canonical_depth: float | None = None,
    ) -> None:
        self.canonical_focal = canonical_focal
        self.min_canonical_depth = min_canonical_depth

    def transform(self, results: dict[str, Any]) -> dict[str, Any] | None:
        scale = self.canonical_focal / results['intrinsics'][0, 0]
        depth = results['gt_depth']
        if self.min_canonical_depth is not None:
            valid = depth[results['gt_mask']]
            if valid.size and scale * valid.min() < self.min_canonical_depth:
                return None
        results['gt_pointmap'] = unproject(depth, results['map_intrinsics'])
        results['gt_scale'] = np.array([scale], np.float32)
        return results

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(canonical_focal={self.canonical_focal}, '
            f'min_canonical_depth={self.min_canonical_depth})'
        )


@TRANSFORMS.register_module()
class RelativeDepthTarget(Transform):
    """Depth relative to the valid pixels: 0 nearest, 1 farthest.

    Goes after the geometric transforms. A sample without depth differences is
    dropped.

    Modified key: ``gt_depth``.

    Source: Sapiens (arXiv 2408.12569), depth task.
    """

    at_inference = 'skip'

    def transform(self, results: dict[str, Any]) -> dict[str, Any] | None:
        depth, mask = results['gt_depth'], results['gt_mask']
        if not mask.any():
            return None
        low, high = depth[mask].min(), depth[mask].max()
        if not high > low:
            return None
        relative = (depth - low) / (high - low)
        results['gt_depth'] = np.where(mask, relative, 0).astype(np.float32)
        return results
