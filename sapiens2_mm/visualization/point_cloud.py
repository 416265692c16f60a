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
    keep = np.isfinite(points).all(0)
    columns = dict(zip('xyz', points, strict=False))
    if normals is not None:
        normals = np.asarray(normals, np.float32)
        columns.update(zip(('nx', 'ny', 'nz'), normals, strict=True))
    if colors is not None:
        colors = np.asarray(colors)
        planes = np.moveaxis(colors, -1, 0)
        columns.update(zip(('red', 'green', 'blue'), planes, strict=True))
    if mask is not None:
        mask = np.asarray(mask, bool).reshape(np.shape(mask)[-2:])
    sizes = {keep.shape, *(x.shape for x in (*columns.values(), mask) if x is not None)}
    if len(points) != 3 or len(sizes) > 1:
        raise ValueError(
            'save_point_cloud: expected points (3, H, W) and all else of their size, '
            f'got {points.shape} and (H, W) {sizes}'
        )
    keep = keep if mask is None else keep & mask
    if colors is not None and colors.dtype != np.uint8:
        raise ValueError(f'save_point_cloud: colors must be uint8, got {colors.dtype}')
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
