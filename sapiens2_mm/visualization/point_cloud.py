"""Export of pointmaps."""

from pathlib import Path

import numpy as np


def save_point_cloud(
    path: str | Path,
    points: np.ndarray,
    colors: np.ndarray | None = None,
    normals: np.ndarray | None = None,
    mask: np.ndarray | None = None,
) -> int:
    """Write a binary PLY file.

    Args:
        path: file to write; its folder is made.
        points: (3, H, W), X right, Y down, Z forward, meters.
        colors: (H, W, 3) uint8 RGB.
        normals: (3, H, W).
        mask: (1, H, W) or (H, W) bool, the points to write. Points that are not finite
            are left out too.

    Returns:
        Number of points written.

    Raises:
        ImportError: if plyfile is not installed.
        ValueError: for another shape, if the sizes differ or if no point is left.
    """
    try:
        from plyfile import PlyData, PlyElement
    except ModuleNotFoundError as err:
        raise ImportError(
            'save_point_cloud needs plyfile; install sapiens2_mm[demo]'
        ) from err
    points = np.asarray(points, np.float32)
    if points.ndim != 3 or len(points) != 3:
        raise ValueError(
            'save_point_cloud: points must have the shape (3, H, W), got '
            f'{points.shape}'
        )
    size = points.shape[1:]
    keep = np.isfinite(points).all(0)
    columns = dict(zip('xyz', points, strict=True))
    if mask is not None:
        mask = np.asarray(mask, bool).reshape(np.shape(mask)[-2:])
        _check_size('mask', mask.shape, size)
        keep &= mask
    if normals is not None:
        normals = np.asarray(normals, np.float32)
        _check_size('normals', normals.shape[1:], size)
        columns.update(zip(('nx', 'ny', 'nz'), normals, strict=True))
    if colors is not None:
        colors = np.asarray(colors)
        if colors.dtype != np.uint8:
            raise ValueError(
                f'save_point_cloud: colors must be uint8, got {colors.dtype}'
            )
        _check_size('colors', colors.shape[:2], size)
        columns.update(
            zip(('red', 'green', 'blue'), colors.transpose(2, 0, 1), strict=True)
        )
    if not keep.any():
        raise ValueError(f'save_point_cloud: no point left to write to {path}')
    table = np.empty(
        np.count_nonzero(keep), [(name, x.dtype) for name, x in columns.items()]
    )
    for name, values in columns.items():
        table[name] = values[keep]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    PlyData([PlyElement.describe(table, 'vertex')]).write(str(path))
    return len(table)


def _check_size(name: str, size: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if tuple(size) != tuple(expected):
        raise ValueError(
            f'save_point_cloud: {name} of size {tuple(size)} do not fit points of size '
            f'{tuple(expected)}'
        )
