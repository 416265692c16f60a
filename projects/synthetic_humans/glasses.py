"""Procedural spectacles: two rims, a bridge and two temples, no lenses."""

from __future__ import annotations

import numpy as np

from .mesh import triangulate

_RIM_RADIUS = 0.023
_RIM_FORWARD = 0.028  # meters in front of the eye centers
_RIM_DROP = 0.005  # meters below them, as worn


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def _torus(
    center: np.ndarray, u: np.ndarray, v: np.ndarray, radius: float, thickness: float
) -> tuple[np.ndarray, np.ndarray]:
    num_long, num_short = 32, 6
    long, short = np.meshgrid(
        np.linspace(0, 2 * np.pi, num_long, endpoint=False),
        np.linspace(0, 2 * np.pi, num_short, endpoint=False),
        indexing='ij',
    )
    ring = radius + thickness * np.cos(short)
    points = (
        center
        + (ring * np.cos(long))[..., None] * u
        + (ring * np.sin(long))[..., None] * v
        + (thickness * np.sin(short))[..., None] * np.cross(u, v)
    ).reshape(-1, 3)
    ids = np.arange(num_long * num_short).reshape(num_long, num_short)
    after, beside = np.roll(ids, -1, axis=0), np.roll(ids, -1, axis=1)
    both = np.roll(after, -1, axis=1)
    quads = np.stack([ids, after, both, beside], axis=-1).reshape(-1, 4)
    return points, triangulate(quads)


def _tube(
    start: np.ndarray, end: np.ndarray, thickness: float
) -> tuple[np.ndarray, np.ndarray]:
    num = 6
    axis = _unit(end - start)
    u = _unit(np.cross(axis, [0.3, 0.5, 0.8]))
    v = np.cross(axis, u)
    angle = np.linspace(0, 2 * np.pi, num, endpoint=False)
    ring = thickness * (np.outer(np.cos(angle), u) + np.outer(np.sin(angle), v))
    j = np.arange(num)
    k = (j + 1) % num
    quads = np.stack([j, k, num + k, num + j], axis=1)
    return np.concatenate([start + ring, end + ring]), triangulate(quads)


def make_glasses(
    left_eye: np.ndarray,
    right_eye: np.ndarray,
    left_ear: np.ndarray,
    right_ear: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Mesh of spectacles fitted to a face.

    Args:
        left_eye, right_eye: (3,) centers of the eyeballs, any frame in meters
            that is not mirrored.
        left_ear, right_ear: (3,) where the ears join the head at the top.

    Returns:
        vertices (V, 3) and faces (T, 3).
    """
    side = _unit(left_eye - right_eye)
    back = (left_ear + right_ear - left_eye - right_eye) / 2
    forward = -_unit(np.cross(np.cross(side, back), side))
    up = np.cross(side, -forward)
    rim = forward * _RIM_FORWARD - up * _RIM_DROP
    left, right = left_eye + rim, right_eye + rim
    reach = side * _RIM_RADIUS
    parts = [
        _torus(left, side, up, _RIM_RADIUS, 0.0016),
        _torus(right, side, up, _RIM_RADIUS, 0.0016),
        _tube(right + reach, left - reach, 0.0014),
        _tube(left + reach, left_ear + up * 0.012 + side * 0.006, 0.0016),
        _tube(right - reach, right_ear + up * 0.012 - side * 0.006, 0.0016),
    ]
    vertices, faces, start = [], [], 0
    for points, triangles in parts:
        vertices.append(points)
        faces.append(triangles + start)
        start += len(points)
    return np.concatenate(vertices), np.concatenate(faces)
