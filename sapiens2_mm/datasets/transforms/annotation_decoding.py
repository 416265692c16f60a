"""From the values in a file to normals, depth, albedo and cameras.

A decoder takes an array, the path it was read from and the sample's results; it
returns float32 values and where they are known.
"""

import io
from typing import Any

import mmengine.fileio
import numpy as np

from .base import get_entry


def set_cameras(results: dict[str, Any]) -> None:
    """Put the camera of a sample into ``results``, see ``LoadDenseAnnotations``."""
    if 'extrinsics_path' in results:
        results['extrinsics'] = _read_matrix(results['extrinsics_path'], 4)
    if 'intrinsics_path' in results:
        source = results['intrinsics_path']
        intrinsics = _read_matrix(source, 3)
    else:
        source = results.get('img_path')
        advice = 'give the dataset with_camera=True'
        intrinsics = np.array(get_entry(results, 'camera_matrix', advice), np.float64)
    # below a twentieth of the size the camera would look 168 degrees wide
    height, width = results['ori_shape']
    widest = np.array([width, height]) / 20
    if not (np.isfinite(intrinsics).all() and (np.diag(intrinsics)[:2] > widest).all()):
        raise ValueError(
            f'camera of {source}: expected focal lengths fx and fy in pixels of an '
            f'image of {width} x {height}, got {intrinsics.tolist()}; multiply the '
            'rows of a normalized camera by width and height'
        )
    for name in ('intrinsics', 'map_intrinsics', 'ori_intrinsics'):
        results[name] = intrinsics.copy()


def _read_matrix(path: str, size: int) -> np.ndarray:
    try:
        matrix = np.loadtxt(io.StringIO(mmengine.fileio.get_text(path)), ndmin=2)
        if matrix.shape != (size, size):
            raise ValueError(f'got shape {matrix.shape}')
    except ValueError as err:
        raise ValueError(f'{path}: expected {size}x{size} numbers: {err}') from err
    return matrix


def _as_float(values: np.ndarray, path: str) -> tuple[np.ndarray, np.ndarray]:
    """float32, and where all channels are finite.

    Unsigned integers are divided by their range; that of others nobody knows.
    """
    if np.issubdtype(values.dtype, np.unsignedinteger):
        values = values.astype(np.float32) / np.iinfo(values.dtype).max
        return values, np.ones(values.shape[:2], bool)
    if not np.issubdtype(values.dtype, np.floating):
        raise ValueError(
            f'{path}: expected float or unsigned integer values, got {values.dtype}'
        )
    values = values.astype(np.float32)
    return values, np.isfinite(values).all(2)


def _decode_normal(
    values: np.ndarray, path: str, results: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    if np.issubdtype(values.dtype, np.unsignedinteger):
        valid = (values[..., 0] | values[..., 1] | values[..., 2]) > 0
        factor = 2 / np.iinfo(values.dtype).max
        values = values.astype(np.float32)
        values *= factor
        values -= 1
    else:
        values, valid = _as_float(values, path)
        values[~valid] = 0
    values *= np.float32(results.get('normal_signs', 1))
    x, y, z = np.square(values).transpose(2, 0, 1)
    length = np.sqrt(x + y + z)
    valid &= length > 1e-6
    values /= np.maximum(length, 1e-6)[..., None]
    return values, valid


def _decode_depth(
    values: np.ndarray, path: str, results: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    if np.issubdtype(values.dtype, np.integer):
        if values.dtype.itemsize < 2:
            raise ValueError(
                f'{path}: expected depth as float or integers of 16 bits, got '
                f'{values.dtype}, a picture of the depth?'
            )
        advice = f'set it in the dataset, as {path} holds integers'
        scale = np.float64(get_entry(results, 'depth_scale', advice))
        meters = np.empty(values.shape, np.float32)
        values = np.multiply(values, scale, out=meters, casting='same_kind')
    values = values.astype(np.float32, copy=False).reshape(values.shape[:2])
    return values, np.isfinite(values) & (values > 0)


def _decode_albedo(
    values: np.ndarray, path: str, results: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    values, valid = _as_float(values, path)
    known = values if valid.all() else values[valid]
    if known.size and not -0.1 <= known.min() <= known.max() < 1.1:
        raise ValueError(
            f'{path}: expected albedo in [0, 1], got values from {known.min():g} to '
            f'{known.max():g}; divide them by their range'
        )
    return values, valid


DECODERS = dict(normal=_decode_normal, depth=_decode_depth, albedo=_decode_albedo)
