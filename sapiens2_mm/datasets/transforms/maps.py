"""The maps that geometric transforms carry along with an image, and their camera."""

from typing import Any, NamedTuple

import cv2
import numpy as np


class MapKind(NamedTuple):
    """What a transform must know about a map.

    Attributes:
        channels: 1 for (H, W), else the last dimension.
        linear: resized bilinearly; else by nearest neighbor, as values at a
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


def is_linear(name: str) -> bool:
    """Whether the image (``'img'``) or a map is resized bilinearly."""
    return name == 'img' or MAPS[name].linear


def present_maps(results: dict[str, Any]) -> list[str]:
    """Names of the maps that ``results`` holds."""
    return [name for name in MAPS if name in results]


def resize_nearest(values: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Resize (H, W, ...) to ``size``; each value comes from the pixel under its center.

    OpenCV's ``INTER_NEAREST`` takes the pixel under the corner, which shifts a map
    against its image.
    """
    for axis, new in enumerate(size):
        old = values.shape[axis]
        if new != old:
            nearest = (2 * np.arange(new) + 1) * old // (2 * new)
            values = values.take(nearest, axis)
    return values


def resize_sample(
    results: dict[str, Any],
    size: tuple[int, int],
    interpolation: int = cv2.INTER_LINEAR,
    with_maps: bool = True,
    map_stride: int = 1,
) -> None:
    """Resize the image, its maps and its cameras.

    Args:
        results: ``img``, ``img_shape``, maps and cameras are changed.
        size: (height, width).
        interpolation: of OpenCV, for the image and linear maps.
        with_maps: whether the maps change with the image.
        map_stride: sides of the new image over those of the new maps. Each map is
            made from the one there is, not from one of the image's size.
    """
    height, width = results['img'].shape[:2]
    map_size = (size[0] // map_stride, size[1] // map_stride)
    new_sizes = {'img': size}
    if with_maps:
        new_sizes.update(dict.fromkeys(present_maps(results), map_size))
    for name, new_size in new_sizes.items():
        if is_linear(name):
            results[name] = cv2.resize(
                results[name], new_size[::-1], interpolation=interpolation
            )
        else:
            results[name] = resize_nearest(results[name], new_size)
    results['img_shape'] = size
    # the true factors, after rounding to whole pixels
    factors = (size[1] / width, size[0] / height)
    update_cameras(results, scaled_camera, *factors, maps=with_maps)
    if with_maps and map_stride > 1:
        shrink_map_camera(results, map_stride)


def pad(
    values: np.ndarray, padding: tuple[int, int, int, int], value: int = 0
) -> np.ndarray:
    """Add (left, right, top, bottom) pixels of ``value`` to (H, W) or (H, W, C)."""
    left, right, top, bottom = padding
    height, width = values.shape[:2]
    size = (top + height + bottom, left + width + right, *values.shape[2:])
    padded = np.full(size, value, values.dtype)
    padded[top : top + height, left : left + width] = values
    return padded


def mirrored(values: np.ndarray) -> np.ndarray:
    """(H, W) or (H, W, C) with left and right exchanged."""
    plain = values.view(np.uint8) if values.dtype == bool else values
    return cv2.flip(plain, 1).view(values.dtype)


def as_mask(valid: np.ndarray) -> np.ndarray:
    """A bool array as OpenCV's functions take a mask."""
    return np.ascontiguousarray(valid).view(np.uint8)


def straight_bgr(results: dict[str, Any]) -> np.ndarray:
    """Colors of ``gt_foreground`` not multiplied by alpha: (H, W, 3) uint8 BGR."""
    alpha = results['gt_alpha'][..., None]
    straight = results['gt_foreground'] / np.maximum(alpha, 1e-6)
    rgb = (straight * 255).round().clip(0, 255).astype(np.uint8)
    return np.ascontiguousarray(rgb[..., ::-1])


def scaled_camera(matrix: np.ndarray, scale_x: float, scale_y: float) -> np.ndarray:
    """Camera matrix after resizing the image by the two factors.

    Pixel centers lie at integers, so the image begins at -0.5 and the principal point
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


def shrink_map_camera(results: dict[str, Any], map_stride: int) -> None:
    """Let ``map_intrinsics`` describe maps ``map_stride`` times as small."""
    if 'map_intrinsics' in results:
        results['map_intrinsics'] = scaled_camera(
            results['map_intrinsics'], 1 / map_stride, 1 / map_stride
        )


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
