"""The maps that geometric transforms carry along with an image, and their camera."""

from typing import Any, NamedTuple

import cv2
import numpy as np


class MapKind(NamedTuple):
    """What a transform must know about a map.

    Attributes:
        channels: 1 for (H, W), else the last dimension.
        linear: resized bilinearly; else by nearest neighbour, as values at a
            silhouette have no meaning in between.
        vector: holds camera-frame vectors, whose x a flip negates.
    """

    channels: int
    linear: bool = False
    vector: bool = False


MAPS = {
    'gt_normal': MapKind(3, vector=True),
    'gt_pointmap': MapKind(3, vector=True),
    'gt_depth': MapKind(1),
    'gt_albedo': MapKind(3, linear=True),
    'gt_alpha': MapKind(1, linear=True),
    'gt_foreground': MapKind(3, linear=True),
    'gt_foreground_mask': MapKind(1),
    'gt_mask': MapKind(1),
}


def present_maps(results: dict[str, Any]) -> list[str]:
    """Names of the maps that ``results`` holds."""
    return [name for name in MAPS if name in results]


def resize_nearest(values: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Resize (H, W, ...) to ``size``; each value comes from the pixel under its centre.

    OpenCV's ``INTER_NEAREST`` takes the pixel under the corner, which shifts a map
    against its image.
    """
    rows, cols = (
        (2 * np.arange(new) + 1) * old // (2 * new)
        for old, new in zip(values.shape[:2], size, strict=True)
    )
    return values[rows[:, None], cols]


def resize_linear(values: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Bilinear resize of (H, W) or (H, W, C), half-pixel centres."""
    return cv2.resize(values, size[::-1], interpolation=cv2.INTER_LINEAR)


def resize_maps(results: dict[str, Any], size: tuple[int, int]) -> None:
    """Resize all maps in ``results`` to (H, W)."""
    for name in present_maps(results):
        resize = resize_linear if MAPS[name].linear else resize_nearest
        results[name] = resize(results[name], size)


def scaled_camera(matrix: np.ndarray, scale_x: float, scale_y: float) -> np.ndarray:
    """Camera matrix after resizing the image by the two factors.

    Pixel centres lie at integers, so the image begins at -0.5 and the principal point
    moves to ``scale * (c + 0.5) - 0.5``. (The reference multiplies it by the scale,
    which is off by a fraction of a pixel.)
    """
    matrix = matrix.copy()
    for row, scale in ((0, scale_x), (1, scale_y)):
        matrix[row, 2] += 0.5
        matrix[row] *= scale
        matrix[row, 2] -= 0.5
    return matrix


def shifted_camera(matrix: np.ndarray, left: float, top: float) -> np.ndarray:
    """Camera matrix after cropping ``left`` and ``top`` pixels (negative: padding)."""
    matrix = matrix.copy()
    matrix[0, 2] -= left
    matrix[1, 2] -= top
    return matrix


def flipped_camera(matrix: np.ndarray, width: int) -> np.ndarray:
    """Camera matrix of the mirrored image, whose points have X negated."""
    matrix = matrix.copy()
    matrix[0, 1] *= -1
    matrix[0, 2] = width - 1 - matrix[0, 2]
    return matrix


def update_cameras(
    results: dict[str, Any], function: Any, *args: float, maps: bool = True
) -> None:
    """Apply one of the functions above to the cameras in ``results``.

    Args:
        results: may hold ``intrinsics``, the camera of the image, and
            ``map_intrinsics``, that of the maps.
        function: takes the matrix and ``args``.
        args: further arguments.
        maps: whether the maps were changed along with the image.
    """
    for name in ('intrinsics', 'map_intrinsics') if maps else ('intrinsics',):
        if name in results:
            results[name] = function(results[name], *args)
