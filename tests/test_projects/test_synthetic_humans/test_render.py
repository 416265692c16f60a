"""Rendered ground truth at full precision; needs anny."""

import json

import numpy as np
import pytest

pytest.importorskip('anny')

from projects.synthetic_humans.classes import REGION_ID, SEG_CLASSES, Layer
from projects.synthetic_humans.garments import garment_distances, sample_outfit
from projects.synthetic_humans.keypoint_names import TABLE_PATH, keypoint_names
from projects.synthetic_humans.keypoint_table import build_table, write_table
from projects.synthetic_humans.plan import sample_traits
from projects.synthetic_humans.raycast import Caster
from projects.synthetic_humans.sample import Renderer
from sapiens2_mm.datasets.metainfo.humans308 import METAINFO

pytestmark = pytest.mark.slow
SIZE = (512, 384)


@pytest.fixture(scope='module')
def renderer() -> Renderer:
    return Renderer()


@pytest.fixture(scope='module')
def samples(renderer):
    return [renderer.render(11, i, SIZE) for i in range(8)]


def test_visible_face_keypoints_touch_the_surface(samples):
    gaps = []
    for s in samples:
        seen = (s.keypoints[:, 2] == 2) & (np.arange(308) >= 70)
        u, v = s.keypoints[seen, :2].T
        rows, cols = np.floor(v).astype(int), np.floor(u).astype(int)
        depth = np.zeros(len(u))
        valid = np.ones(len(u), bool)
        for row, col in ((0, 0), (0, 1), (1, 0), (1, 1)):
            r, c = np.minimum(rows + row, 511), np.minimum(cols + col, 383)
            weight = np.where(row, v - rows, 1 - v + rows)
            weight = weight * np.where(col, u - cols, 1 - u + cols)
            depth += weight * s.depth[r, c]
            valid &= s.mask[r, c]
        gaps.append(np.abs(depth - s.keypoint_depth[seen])[valid])
    gaps = np.concatenate(gaps)
    assert len(gaps) > 500
    assert np.median(gaps) < 1e-3
    assert np.percentile(gaps, 90) < 6e-3


def test_normals_equal_the_depth_gradient(samples):
    angles = []
    for s in samples:
        rows, cols = np.indices(SIZE)
        flat = s.camera.unproject(cols.ravel(), rows.ravel(), s.depth.ravel())
        points = flat.reshape(*SIZE, 3).astype(float)
        across = points[1:-1, 2:] - points[1:-1, :-2]
        down = points[2:, 1:-1] - points[:-2, 1:-1]
        normal = np.cross(down, across)
        normal /= np.maximum(np.linalg.norm(normal, axis=2, keepdims=True), 1e-12)
        inside = np.ones((SIZE[0] - 2, SIZE[1] - 2), bool)
        center = s.label[1:-1, 1:-1]
        for dr in (-1, 0, 1):
            for dc in (-1, 0, 1):
                window = np.s_[1 + dr : SIZE[0] - 1 + dr, 1 + dc : SIZE[1] - 1 + dc]
                inside &= s.mask[window] & (s.label[window] == center)
        cosine = (normal * s.normal[1:-1, 1:-1]).sum(axis=2)[inside]
        angles.append(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    angles = np.concatenate(angles)
    assert np.median(angles) < 1.4
    assert np.percentile(angles, 90) < 5


def test_a_sample_does_not_depend_on_what_came_before(renderer, samples):
    again = renderer.render(11, 5, SIZE)
    for name in ('rgb', 'label', 'albedo', 'normal', 'depth', 'keypoints'):
        np.testing.assert_array_equal(getattr(again, name), getattr(samples[5], name))


def test_size_scales_the_view_and_nothing_else(renderer, samples):
    small = renderer.render(11, 2, (256, 192))
    large = samples[2]
    inside = (small.keypoints[:, 2] > 0) & (large.keypoints[:, 2] > 0)
    assert inside.sum() > 100
    scaled = (small.keypoints[inside, :2] + 0.5) * 2 - 0.5
    np.testing.assert_allclose(scaled, large.keypoints[inside, :2], atol=1e-3)
    flags = small.keypoints[inside, 2] == large.keypoints[inside, 2]
    assert flags.mean() > 0.99
    np.testing.assert_allclose(small.keypoint_depth, large.keypoint_depth, atol=1e-5)
    half = large.label[::2, ::2]
    assert (small.label == half).mean() > 0.97


def test_torso_and_thighs_are_always_covered(renderer):
    """In every outfit the trunk below the neck and the upper thighs are inside."""
    s = renderer.surface
    skin = s.layer_vertices(Layer.SKIN)
    points, arm = s.canonical[skin], s.arm[skin]
    height = points[:, 2]
    regions = s.regions[skin].argmax(axis=1)
    legs = np.isin(regions, [REGION_ID['Left_Upper_Leg'], REGION_ID['Right_Upper_Leg']])
    torso = regions == REGION_ID['Torso']
    chest = torso & (height < s.neck[2] - 0.22) & (arm < 0)
    pelvis = (torso & (height < s.hip + 0.03)) | (legs & (height > s.hip - 0.1))
    for i in range(200):
        rng = np.random.default_rng(i)
        outfit = sample_outfit(s, sample_traits(0, i), bool(i % 2), rng)
        worn = garment_distances(s, outfit, points, arm)
        assert (worn.lower[pelvis] > 0).all()
        belly = chest & (height > outfit.waist + outfit.crop)
        assert (worn.upper[belly] > 0).all()
        assert outfit.crop <= 0.06
        assert not (i % 2 and outfit.skirt_hem)


def test_mirrored_keypoints_are_partners(renderer):
    """The canonical body is symmetric: X negated, left and right exchanged."""
    points = renderer.keypoints.positions(renderer.body.canonical)
    ids = {name: i for i, name in enumerate(keypoint_names())}
    infos = METAINFO['keypoint_info'].values()
    swap = [ids[info['swap'] or info['name']] for info in infos]
    error = np.linalg.norm(points * [-1, 1, 1] - points[swap], axis=1)
    worst = int(error.argmax())
    assert error.max() < 0.003, (keypoint_names()[worst], error[worst])
    assert np.median(error) < 2e-4
    left = [i for name, i in ids.items() if name.startswith(('left_', 'l_'))]
    assert (points[left, 0] > 0).all()  # X points to the subject's left


def test_table_file_is_what_its_builder_makes(renderer, tmp_path):
    """Up to the last digits of the weights, which depend on the CPU's rounding."""
    path = tmp_path / 'table.json'
    text = TABLE_PATH.read_text()
    stored = json.loads(text)
    write_table(stored, path)
    assert path.read_text() == text
    built = build_table(renderer.surface, keypoint_names())
    assert built['lip_split'] == pytest.approx(stored['lip_split'], abs=1e-5)
    for ours, entry in zip(built['keypoints'], stored['keypoints'], strict=True):
        our_weights, weights = (
            dict(zip(e.pop('vertices', ()), e.pop('weights', ()), strict=True))
            for e in (ours, entry)
        )
        assert ours == entry
        for vertex in our_weights | weights:
            difference = our_weights.get(vertex, 0) - weights.get(vertex, 0)
            assert abs(difference) < 2e-3, (entry['name'], vertex)


def test_table_builder_names_what_is_missing(renderer):
    with pytest.raises(ValueError, match=r"none for \['left_antenna'\]"):
        build_table(renderer.surface, ['nose', 'left_antenna'])


@pytest.mark.parametrize('seed', [3, 4])
def test_all_classes_within_32_samples(renderer, seed):
    seen = np.zeros(29, bool)
    for i in range(32):
        seen[np.unique(renderer.render(seed, i, (192, 144)).label)] = True
    assert seen.all(), [SEG_CLASSES[i] for i in np.nonzero(~seen)[0]]


def test_caster_passes_through_cut_surfaces():
    """Two parallel squares; the nearer one is cut away in its right half."""
    square = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], float)
    vertices = np.concatenate([square + [0, 0, 2], square + [0, 0, 3]])
    faces = np.array([[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]])
    keep = np.concatenate([-square[:, 0], np.ones(4)])  # > 0 where x < 0
    caster = Caster(vertices, faces, keep)
    face, bary, depth = caster.render(5.0, 4.5, 4.5, 10, 10)
    np.testing.assert_allclose(depth[5, 3:5], 2, atol=1e-5)
    np.testing.assert_allclose(depth[5, 5:7], 3, atol=1e-5)
    assert face[0, 0] == -1 and depth[0, 0] == 0
    np.testing.assert_allclose(bary[5, 4].sum(), 1, atol=1e-6)
    up, nowhere = caster.shoot([[0.2, 0, 0], [5, 5, 0]], [0, 0, 1])[0]
    assert up in (2, 3) and nowhere == -1
    point, normal = np.array([[0.0, 0.5, 3.0]]), np.array([[0.0, 0, -1]])
    towards, away = np.array([-0.5, 0, -0.8]), np.array([0.5, 0, 0.8])
    assert caster.sun_visibility(point, normal, towards)[0] == 0
    assert caster.sun_visibility(point, normal, -away * [-1, 1, 1])[0] == 1
    assert caster.sun_visibility(point, normal, away)[0] == 0  # below the surface
