"""Maps and camera stay true to the image through any geometric pipeline.

The scene is a tilted plane seen by a camera with different fx and fy. Two of its image
channels hold the pixel's own original coordinates, so every output pixel tells where it
came from.
"""

import numpy as np
import pytest
from mmengine.dataset import Compose

from sapiens2_mm.datasets import (
    DenseRandomCrop,
    DenseRandomFlip,
    DenseRandomScale,
    DenseResize,
    Letterbox,
    PointmapTarget,
)
from sapiens2_mm.datasets.transforms.targets import unproject

NORMAL = np.array([0.3, -0.2, -0.9]) / np.linalg.norm([0.3, -0.2, -0.9])
OFFSET = -2.5  # the plane is NORMAL . P = OFFSET, about 2.8 m away


def scene(height=96, width=72):
    """Results as a loader leaves them; the mask is an ellipse."""
    camera = np.array([[90.0, 0, 33.3], [0, 95.0, 50.2], [0, 0, 1]])
    rows, cols = np.mgrid[:height, :width]
    rays = np.stack([cols, rows, np.ones_like(cols)], -1) @ np.linalg.inv(camera).T
    depth = OFFSET / (rays @ NORMAL)
    image = np.zeros((height, width, 3), np.uint8)
    image[..., 0], image[..., 1] = cols, rows
    # linear in the coordinates, so bilinear resizing keeps it exact
    albedo = np.stack([cols / width, rows / height, 0 * rows], -1).astype(np.float32)
    mask = ((rows - 45) / 40) ** 2 + ((cols - 34) / 28) ** 2 < 1
    return dict(
        img=image,
        img_path='scene',
        ori_shape=(height, width),
        img_shape=(height, width),
        gt_depth=np.where(mask, depth, 0).astype(np.float32),
        gt_normal=np.where(mask[..., None], NORMAL, 0).astype(np.float32),
        gt_pointmap=unproject(np.where(mask, depth, 0), camera),
        gt_albedo=albedo,
        gt_mask=mask,
        intrinsics=camera.copy(),
        map_intrinsics=camera.copy(),
        ori_intrinsics=camera.copy(),
        extrinsics=np.eye(4),
    )


def random_steps(rng):
    """Up to five random geometric steps and a final letterbox."""
    steps = []
    for _ in range(rng.integers(1, 6)):
        kind = rng.integers(3)
        if kind == 0:
            factor = rng.uniform(0.5, 2.0)
            steps.append(DenseRandomScale(prob=1.0, scale_range=(factor, factor)))
        elif kind == 1:
            steps.append(DenseRandomCrop(prob=1.0))
        else:
            steps.append(DenseRandomFlip(prob=1.0))
    size = tuple(int(v) for v in rng.integers(40, 160, 2))
    steps.append(Letterbox(size, rounding=rng.choice(['round', 'floor'])))
    return steps


def project(points, camera):
    """(..., 3) points to (..., 2) pixels (col, row)."""
    pixels = points @ camera.T
    return pixels[..., :2] / pixels[..., 2:]


@pytest.mark.parametrize('seed', range(100))
def test_any_pipeline_keeps_geometry_true(seed):
    rng = np.random.default_rng(seed)
    np.random.seed(seed)
    steps = random_steps(rng)
    before = scene()
    results = Compose([*steps, PointmapTarget()])(scene())
    mask = results['gt_mask']
    assert mask.any()
    flipped = sum(isinstance(step, DenseRandomFlip) for step in steps) % 2
    mirror = np.array([-1 if flipped else 1, 1, 1])
    points = results['gt_pointmap'].astype(np.float64)
    rows, cols = np.nonzero(mask)

    # 1. each point lies on the ray of its own pixel
    pixels = project(points[mask], results['intrinsics'])
    assert np.abs(pixels - np.stack([cols, rows], -1)).max() < 1e-3

    # 2. the original camera sees it where the image says this pixel came from; one
    #    pixel of slack at either resolution comes from resampling
    step = results['intrinsics'][0, 0] / before['intrinsics'][0, 0]
    slack = 0.75 + 1.0 / min(step, 1)
    seen = project(points[mask] * mirror, before['intrinsics'])
    source = results['gt_albedo'][mask][:, :2] * (72, 96)
    assert np.abs(seen - source).max() < slack
    assert np.abs(np.median(seen - source, axis=0)).max() < 0.5 * max(1, 1 / step)

    # 3. it is on the (mirrored) plane, but for the depth of the nearest pixel
    distance = points[mask] @ (NORMAL * mirror) - OFFSET
    assert np.abs(distance).max() < 0.06

    # 4. normals are mirrored with the scene and stay unit vectors
    assert np.abs(results['gt_normal'][mask] - NORMAL * mirror).max() < 1e-6

    # 5. the canonical scale follows the focal length
    expected = 768 / results['intrinsics'][0, 0]
    assert results['gt_scale'] == pytest.approx(expected, rel=1e-6)

    # 6. extrinsics are mirrored with the camera
    assert (results['extrinsics'] == np.diag([*mirror, 1])).all()


@pytest.mark.parametrize('seed', range(60))
def test_carried_points_reproject_onto_their_pixels(seed):
    """A pointmap that is resampled itself meets its pixel within half of one."""
    rng = np.random.default_rng(seed)
    np.random.seed(seed)
    results = DenseRandomCrop(prob=0.7)(scene())
    results = DenseRandomFlip(prob=0.5)(results)
    height, width = results['img'].shape[:2]
    size = int(height * rng.uniform(0.3, 1)), int(width * rng.uniform(0.3, 1))
    results = Letterbox(size, rounding=rng.choice(['round', 'floor']))(results)
    mask = results['gt_mask']
    rows, cols = np.nonzero(mask)
    pixels = project(results['gt_pointmap'][mask], results['intrinsics'])
    assert np.abs(pixels - np.stack([cols, rows], -1)).max() <= 0.5 + 1e-4


@pytest.mark.parametrize('size', [(128, 96), (60, 80), (48, 200)])
@pytest.mark.parametrize('cls', [Letterbox, DenseResize])
def test_maps_of_half_the_sides_show_what_the_image_shows(cls, size):
    results = cls(size, map_stride=2)(scene())
    mask = results['gt_mask']
    rows, cols = np.nonzero(mask)
    height, width = size[0] // 2, size[1] // 2
    assert mask.shape == (height, width) and mask.sum() > 50
    # a value comes from the original pixel under its center
    points = project(results['gt_pointmap'][mask], results['map_intrinsics'])
    enlarged = np.maximum(1, results['map_intrinsics'][[0, 1], [0, 1]] / (90, 95))
    error = np.abs(points - np.stack([cols, rows], -1))
    assert (error <= 0.5 * enlarged + 1e-4).all()
    # and a map pixel covers 2x2 pixels of the image
    blocks = results['img'].reshape(height, 2, width, 2, 3).mean((1, 3), float)
    source = results['gt_albedo'][..., :2] * (72, 96)
    inner = mask & (blocks[..., :2] > 1).all(-1)
    assert np.abs(blocks[..., :2] - source)[inner].max() < 1.1
    # the camera of the image differs from theirs by the stride alone
    half = results['intrinsics'] + [[0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]]
    half[:2] /= 2
    half[:2, 2] -= 0.5
    np.testing.assert_allclose(results['map_intrinsics'], half, atol=1e-9)


def cross_products(points, mask):
    """Normals from the differences to the right and lower neighbor, not normalized."""
    right = points[:-1, 1:] - points[:-1, :-1]
    down = points[1:, :-1] - points[:-1, :-1]
    inner = mask[:-1, :-1] & mask[:-1, 1:] & mask[1:, :-1]
    return -np.cross(right, down)[inner], inner


@pytest.mark.parametrize('seed', range(60))
def test_normals_agree_with_the_gradient_of_the_points(seed):
    """Exactly without resizing; with it on average, as depth gets steps."""
    rng = np.random.default_rng(seed)
    np.random.seed(seed)
    steps = [DenseRandomCrop(prob=0.7), DenseRandomFlip(prob=0.5)]
    if seed % 2:
        steps = random_steps(rng)
    results = Compose([*steps, PointmapTarget()])(scene())
    points = results['gt_pointmap'].astype(np.float64)
    normals, inner = cross_products(points, results['gt_mask'])
    expected = results['gt_normal'][:-1, :-1][inner]
    if seed % 2:
        normals, expected = normals.mean(0, keepdims=True), expected[:1]
    cosine = (normals * expected).sum(1) / np.linalg.norm(normals, axis=1)
    error = np.degrees(np.arccos(cosine.clip(-1, 1)))
    assert error.max() < (3 if seed % 2 else 0.1)


@pytest.mark.parametrize('factor', [0.5, 1.0, 2.0, 3.0])
def test_doubling_the_focal_length_halves_the_scale(factor):
    results = scene()
    for name in ('intrinsics', 'map_intrinsics'):
        results[name][:2, :2] *= factor
    scale = PointmapTarget()(results)['gt_scale']
    assert scale == pytest.approx(768 / 90 / factor)


# ------------------------------------------------------------------- single functions


def test_flip_mirrors_every_map_once():
    before, results = scene(), DenseRandomFlip(prob=1.0)(scene())
    assert results['flip'] and (results['img'] == before['img'][:, ::-1]).all()
    for name in ('gt_normal', 'gt_pointmap'):
        assert (results[name] == before[name][:, ::-1] * (-1, 1, 1)).all()
    for name in ('gt_depth', 'gt_albedo', 'gt_mask'):
        assert (results[name] == before[name][:, ::-1]).all()
    twice = DenseRandomFlip(prob=1.0)(results)
    assert (twice['gt_normal'] == before['gt_normal']).all()
    assert (twice['intrinsics'] == before['intrinsics']).all()
    assert not DenseRandomFlip(prob=0.0)(scene())['flip']


def test_crop_stays_within_the_bounds():
    np.random.seed(0)
    areas, aspects = [], []
    for _ in range(60):
        results = DenseRandomCrop(prob=1.0)(scene())
        height, width = results['img'].shape[:2]
        assert results['img_shape'] == results['gt_mask'].shape == (height, width)
        areas.append(height * width / (96 * 72))
        aspects.append(width / height)
    assert min(areas) > 0.39 and max(areas) <= 1
    assert 0.49 < min(aspects) < 0.75 < max(aspects) < 2.05


def test_crop_of_one_size_lies_anywhere_in_the_image():
    np.random.seed(0)
    corners = set()
    for _ in range(20):
        image = np.arange(96 * 72, dtype=np.int32).reshape(96, 72)
        results = DenseRandomCrop(prob=1.0, size=(40, 90))(dict(img=image))
        assert results['img'].shape == results['img_shape'] == (40, 72)
        corners.add(int(results['img'][0, 0]) // 72)
    assert len(corners) > 10 and max(corners) <= 56


def test_scale_draws_from_its_range():
    np.random.seed(0)
    heights = [
        DenseRandomScale(prob=1.0, scale_range=(0.5, 2.0))(scene())['img'].shape[0]
        for _ in range(40)
    ]
    assert min(heights) >= 48 and max(heights) <= 192 and len(set(heights)) > 20
    assert DenseRandomScale(prob=0.0)(scene())['img'].shape == (96, 72, 3)


@pytest.mark.parametrize(
    'make, message',
    [
        (
            lambda: DenseRandomScale(scale_range=(2, 1)),
            r'scale_range .*\(2, 1\)',
        ),
        (
            lambda: DenseRandomCrop(area_range=(0, 1)),
            r'area_range .*\(0, 1\)',
        ),
        (
            lambda: DenseRandomCrop(aspect_range=(2, 1)),
            r'aspect_range .*\(2, 1\)',
        ),
        (lambda: Letterbox((8, 6), rounding='ceil'), "got 'ceil'"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# ------------------------------------------------------------- bringing to one size


def test_letterbox_leaves_the_maps_alone_at_test_time():
    before = scene()
    results = Letterbox((160, 64), rounding='floor', with_maps=False)(scene())
    assert results['img'].shape == (160, 64, 3)
    for name in ('gt_depth', 'gt_normal', 'gt_mask', 'map_intrinsics'):
        assert (results[name] == before[name]).all()
    assert results['intrinsics'][0, 0] == pytest.approx(90 * 64 / 72)
    results = PointmapTarget()(results)
    # points by the camera of the maps, scale by that of the network input
    expected = unproject(before['gt_depth'], before['intrinsics'])
    assert np.abs(results['gt_pointmap'] - expected).max() < 1e-5
    assert results['gt_scale'] == pytest.approx(768 / (90 * 64 / 72))


def test_dense_resize_stretches():
    results = DenseResize((48, 72))(scene())
    assert results['img'].shape == (48, 72, 3) and results['gt_mask'].shape == (48, 72)
    assert results['padding'] == (0, 0, 0, 0)
    results = PointmapTarget()(results)
    mask = results['gt_mask']
    rows, cols = np.nonzero(mask)
    pixels = project(results['gt_pointmap'][mask], results['intrinsics'])
    assert np.abs(pixels - np.stack([cols, rows], -1)).max() < 1e-3
    before = scene()
    kept = DenseResize((48, 72), with_maps=False)(scene())
    assert (kept['gt_depth'] == before['gt_depth']).all()
