"""Triangle mesh operations for a fixed topology: subdivision and normals."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def triangulate(quads: np.ndarray) -> np.ndarray:
    """Split quads (or per-corner attributes of quads) into triangles.

    Args:
        quads: (Q, 4, ...) corners in order.

    Returns:
        (2Q, 3, ...): all first halves, then all second halves.
    """
    quads = np.asarray(quads)
    return np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])


def _mask_matrix(rows, cols, values, shape) -> sparse.csr_matrix:
    return sparse.csr_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))),
        shape=shape,
        dtype=np.float32,
    )


def loop_subdivision(
    faces: np.ndarray, num_vertices: int
) -> tuple[sparse.csr_matrix, np.ndarray]:
    """One step of Loop subdivision as a sparse matrix.

    Interior edges use weights 3/8, 3/8, 1/8, 1/8, interior vertices Warren's
    weights, boundaries the cubic B-spline rules. Vertices where the boundary
    is not a simple curve and vertices without a face stay in place.

    Args:
        faces: (F, 3) vertex ids.
        num_vertices: N, number of vertices.

    Returns:
        matrix (N + E, N) that maps old to new vertices (the first N rows are
        the moved old vertices), and the (4F, 3) new faces: for each block of F,
        the children at corner 0, 1, 2 and in the middle.
    """
    faces = np.asarray(faces)
    num_faces = len(faces)
    # Edge k of a face is opposite to its corner k.
    halves = np.sort(faces[:, [[1, 2], [2, 0], [0, 1]]].reshape(-1, 2), axis=1)
    edges, edge_of, count = np.unique(
        halves, axis=0, return_inverse=True, return_counts=True
    )
    edge_of = edge_of.reshape(-1)
    num_edges = len(edges)
    interior = count == 2

    # Edge points.
    ends = np.where(interior, 3 / 8, 1 / 2)
    edge_row = num_vertices + np.arange(num_edges)
    opposite_rows = num_vertices + edge_of
    on = interior[edge_of]
    rows = [edge_row, edge_row, opposite_rows[on]]
    cols = [edges[:, 0], edges[:, 1], faces.reshape(-1)[on]]
    values = [ends, ends, np.full(int(on.sum()), 1 / 8)]

    # Old vertices.
    inner, border = edges[interior], edges[count == 1]
    tangled = edges[count > 2]
    valence = np.bincount(inner.ravel(), minlength=num_vertices)
    border_valence = np.bincount(border.ravel(), minlength=num_vertices)
    fixed = np.isin(np.arange(num_vertices), tangled) | ~np.isin(border_valence, (0, 2))
    fixed |= (valence == 0) & (border_valence == 0)
    on_border = (border_valence == 2) & ~fixed
    inside = ~fixed & ~on_border
    beta = np.where(valence == 3, 3 / 16, 3 / (8 * np.maximum(valence, 1)))
    own = np.where(inside, 1 - valence * beta, np.where(on_border, 3 / 4, 1.0))
    rows.append(np.arange(num_vertices))
    cols.append(np.arange(num_vertices))
    values.append(own)
    for pairs, active, weight in (
        (inner, inside, beta),
        (border, on_border, np.full(num_vertices, 1 / 8)),
    ):
        for center, other in ((pairs[:, 0], pairs[:, 1]), (pairs[:, 1], pairs[:, 0])):
            use = active[center]
            rows.append(center[use])
            cols.append(other[use])
            values.append(weight[center[use]])

    matrix = _mask_matrix(rows, cols, values, (num_vertices + num_edges, num_vertices))
    mid = (num_vertices + edge_of).reshape(num_faces, 3)
    children = [
        np.stack([faces[:, k], mid[:, k - 1], mid[:, k - 2]], axis=1) for k in range(3)
    ]
    return matrix, np.concatenate([*children, mid])


def subdivide_corners(corners: np.ndarray) -> np.ndarray:
    """Per-corner attributes of the faces made by :func:`loop_subdivision`.

    Args:
        corners: (F, 3, C), interpolated linearly inside each face.

    Returns:
        (4F, 3, C) in the face order of :func:`loop_subdivision`.
    """
    mid = (corners[:, [1, 2, 0]] + corners[:, [2, 0, 1]]) / 2  # opposite to corner k
    children = [
        np.stack([corners[:, k], mid[:, k - 1], mid[:, k - 2]], axis=1)
        for k in range(3)
    ]
    return np.concatenate([*children, mid])


class VertexNormals:
    """Area-weighted vertex normals of a fixed topology.

    Args:
        faces: (F, 3) vertex ids, counter-clockwise seen from outside.
        num_vertices: N.
    """

    def __init__(self, faces: np.ndarray, num_vertices: int) -> None:
        self.faces = faces
        face_ids = np.repeat(np.arange(len(faces)), 3)
        self._gather = sparse.csr_matrix(
            (np.ones(faces.size, np.float32), (faces.reshape(-1), face_ids)),
            shape=(num_vertices, len(faces)),
        )

    def __call__(self, vertices: np.ndarray) -> np.ndarray:
        """(N, 3) vertices to (N, 3) unit normals (0 where no face is)."""
        a, b, c = (vertices[self.faces[:, k]] for k in range(3))
        normals = self._gather @ np.cross(b - a, c - a)
        length = np.linalg.norm(normals, axis=1, keepdims=True)
        return normals / np.maximum(length, 1e-12)


def smoothstep(low: float, high: float, x: np.ndarray) -> np.ndarray:
    """Cubic ramp from 0 at ``low`` to 1 at ``high`` (``low`` may be larger)."""
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def wave_noise(points: np.ndarray, seed: int, frequency: float) -> np.ndarray:
    """Band-limited noise: a sum of eight random plane waves.

    Args:
        points: (N, 3) in meters.
        seed: chooses the waves.
        frequency: angular frequency scale in rad per meter.

    Returns:
        (N,) float32, mostly within [-1, 1] (at most 2 in size).
    """
    rng = np.random.default_rng(seed)
    waves = (rng.normal(size=(3, 8)) * frequency).astype(np.float32)
    phase = rng.uniform(0, 2 * np.pi, 8).astype(np.float32)
    return np.sin(points.astype(np.float32) @ waves + phase).sum(-1) / 4
