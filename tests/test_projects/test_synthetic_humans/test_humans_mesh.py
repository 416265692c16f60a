"""Subdivision and normals on meshes whose answer is known."""

import numpy as np
import pytest

pytest.importorskip('scipy')

from projects.synthetic_humans.mesh import (
    VertexNormals,
    loop_subdivision,
    smoothstep,
    subdivide_corners,
    triangulate,
    wave_noise,
)

OCTAHEDRON = np.array(
    [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], float
)
OCTAHEDRON_FACES = np.array(
    [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4]]
    + [[2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]]
)


def flat_grid(side: int) -> tuple[np.ndarray, np.ndarray]:
    """A flat square of (side - 1)^2 quads, triangulated."""
    rows, cols = np.mgrid[:side, :side]
    ids = rows * side + cols
    corners = (ids[:-1, :-1], ids[:-1, 1:], ids[1:, 1:], ids[1:, :-1])
    quads = np.stack([c.ravel() for c in corners], axis=1)
    points = np.stack([cols.ravel(), rows.ravel(), 0 * ids.ravel()], axis=1)
    return points.astype(float), triangulate(quads)


def test_loop_weights_of_the_octahedron():
    matrix, faces = loop_subdivision(OCTAHEDRON_FACES, 6)
    fine = matrix @ OCTAHEDRON
    assert matrix.shape == (6 + 12, 6) and faces.shape == (32, 3)
    # Valence 4: beta = 3 / 32, the four neighbors cancel, 1 - 4 beta is left.
    np.testing.assert_allclose(fine[:6], OCTAHEDRON * (1 - 12 / 32), atol=1e-7)
    # Edge points: 3/8 of both ends; the opposite corners cancel.
    np.testing.assert_allclose(np.sort(np.abs(fine[6:]), axis=1)[:, 1:], 3 / 8)


def test_loop_keeps_orientation_and_area_order():
    matrix, faces = loop_subdivision(OCTAHEDRON_FACES, 6)
    fine = matrix @ OCTAHEDRON
    a, b, c = (fine[faces[:, k]] for k in range(3))
    outwards = (np.cross(b - a, c - a) * (a + b + c)).sum(axis=1)
    assert (outwards > 0).all()


def test_loop_keeps_a_flat_sheet_and_its_corners():
    points, faces = flat_grid(4)
    matrix, fine_faces = loop_subdivision(faces, len(points))
    np.testing.assert_allclose(np.asarray(matrix.sum(axis=1)).ravel(), 1, atol=1e-6)
    fine = matrix @ points
    assert (fine[:, 2] == 0).all()
    # The straight border stays on the border.
    on_border = (points[:, :2] == 0).any(axis=1) | (points[:, :2] == 3).any(axis=1)
    moved = fine[: len(points)][on_border]
    inner = np.minimum(moved[:, :2], 3 - moved[:, :2]).min(axis=1)
    assert inner.max() < 0.2
    a, b, c = (fine[fine_faces[:, k]] for k in range(3))
    assert (np.cross(b - a, c - a)[:, 2] > 0).all()


def test_loop_leaves_unused_vertices_alone():
    matrix, _ = loop_subdivision(OCTAHEDRON_FACES, 8)
    extra = np.concatenate([OCTAHEDRON, [[5, 6, 7], [8, 9, 10]]])
    np.testing.assert_array_equal((matrix @ extra)[6:8], extra[6:])


def test_corner_attributes_follow_the_faces():
    """Corner values that equal the positions stay linear on flat faces."""
    points, faces = flat_grid(3)
    _, fine_faces = loop_subdivision(faces, len(points))
    corners = subdivide_corners(points[faces][..., :2])
    assert corners.shape == (len(fine_faces), 3, 2)
    first = points[faces[:, 0]][:, :2]
    np.testing.assert_array_equal(corners[: len(faces), 0], first)
    middle = corners[3 * len(faces) :].mean(axis=1)
    np.testing.assert_allclose(middle, points[faces].mean(axis=1)[:, :2])


def test_vertex_normals_of_a_sphere_point_outwards():
    points, faces = OCTAHEDRON, OCTAHEDRON_FACES
    for _ in range(3):
        matrix, faces = loop_subdivision(faces, len(points))
        points = matrix @ points
        points /= np.linalg.norm(points, axis=1, keepdims=True)
    normals = VertexNormals(faces, len(points))(points)
    angle = np.degrees(np.arccos(np.clip((normals * points).sum(axis=1), -1, 1)))
    assert angle.max() < 2.5


def test_smoothstep_ends_and_direction():
    np.testing.assert_array_equal(
        smoothstep(0, 2, np.array([-1.0, 0, 1, 2, 3])), [0, 0, 0.5, 1, 1]
    )
    assert smoothstep(1.0, 0.0, np.array(0.25)) == pytest.approx(1 - 0.15625)


def test_wave_noise_depends_on_points_and_seed_alone():
    points = np.random.default_rng(0).normal(size=(500, 3))
    noise = wave_noise(points, 3, 10.0)
    np.testing.assert_array_equal(noise, wave_noise(points, 3, 10.0))
    assert not np.allclose(noise, wave_noise(points, 4, 10.0))
    assert np.abs(noise).max() <= 2 and abs(noise.mean()) < 0.1
