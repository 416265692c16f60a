"""Pictures of normals, depth, albedo and mattes; export of point clouds."""

from itertools import count

import numpy as np
import pytest
import torch
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from PIL import Image
from plyfile import PlyData

from sapiens2_mm.registry import VISUALIZERS
from sapiens2_mm.structures import DenseDataSample
from sapiens2_mm.visualization import save_point_cloud
from sapiens2_mm.visualization.depth_visualizer import (
    color_bar,
    depth_bounds,
    inverse_depth_norm,
)
from sapiens2_mm.visualization.matting_visualizer import composite
from sapiens2_mm.visualization.normal_visualizer import normal_colors

HEIGHT, WIDTH = 120, 90
NUMBERS = count()


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)


def disc():
    rows, cols = np.mgrid[:HEIGHT, :WIDTH]
    return torch.from_numpy((rows - 60) ** 2 + (cols - 45) ** 2 < 35**2)[None]


def sample():
    """A sphere of 0.35 m radius, 2 m away."""
    rows, cols = torch.meshgrid(
        torch.arange(float(HEIGHT)), torch.arange(float(WIDTH)), indexing='ij'
    )
    x, y = (cols - 45) / 35, (rows - 60) / 35
    z = -(1 - x**2 - y**2).clamp(min=0).sqrt()
    normal = torch.stack([x, y, z]) * disc()
    points = torch.stack([0.35 * x, 0.35 * y, 2 + 0.35 * z])
    result = DenseDataSample(metainfo=dict(img_path='a.jpg'))
    result.gt_mask = disc()
    for kind in ('gt', 'pred'):
        result.set_field(normal, f'{kind}_normal')
        result.set_field(points, f'{kind}_pointmap')
        result.set_field((points[2:] - 1.65) / 0.35, f'{kind}_depth')
        result.set_field(torch.full((3, HEIGHT, WIDTH), 0.25), f'{kind}_albedo')
        result.set_field(0.5 * disc().float(), f'{kind}_alpha')
        result.set_field(
            torch.zeros(3, HEIGHT, WIDTH) + 0.5 * disc(), f'{kind}_foreground'
        )
    return result


def draw(task, image, data_sample, tmp_path, **kwargs):
    name = f'dense {next(NUMBERS)}'  # mmengine keeps one visualizer per name
    config = dict(type=f'sapiens2_mm.{task}Visualizer', name=name)
    visualizer = VISUALIZERS.build(config)
    path = tmp_path / 'тест é' / f'{task} 1.png'
    visualizer.add_datasample('a', image, data_sample, out_file=str(path), **kwargs)
    return np.asarray(Image.open(path))


@pytest.mark.parametrize('task', ['Normal', 'Pointmap', 'Albedo', 'Matting', 'Depth'])
@pytest.mark.parametrize('kinds', [(), ('gt',), ('pred',), ('gt', 'pred')])
def test_pictures_stand_side_by_side(task, kinds, image, tmp_path):
    options = dict(draw_gt='gt' in kinds, draw_pred='pred' in kinds)
    picture = draw(task, image, sample(), tmp_path, **options)
    assert (picture[:, :WIDTH] == image).all()
    bar = 90
    extra = {
        'Normal': WIDTH * len(kinds),
        'Albedo': WIDTH * len(kinds),
        'Matting': 2 * WIDTH * len(kinds),
        'Depth': (WIDTH + bar) * len(kinds),
        'Pointmap': WIDTH * len(kinds) + (bar if kinds else 0),
    }[task]
    assert picture.shape == (HEIGHT, WIDTH + extra, 3)
    if len(kinds) == 2 and task == 'Normal':
        assert (picture[:, WIDTH : 2 * WIDTH] == picture[:, 2 * WIDTH :]).all()


@pytest.mark.parametrize('task', ['Normal', 'Pointmap', 'Albedo', 'Matting', 'Depth'])
def test_annotations_of_another_size_are_not_drawn(task, image, tmp_path):
    other = sample()
    for name, values in list(other.items()):
        if name.startswith('gt_'):
            other.set_field(values[:, :50, :40], name)
    whole = sample()
    whole.pred_mask = other.pred_mask = disc()
    options = dict(draw_gt=False)
    expected = draw(task, image, whole, tmp_path, **options)
    assert (draw(task, image, other, tmp_path) == expected).all()


def test_without_a_sample_only_the_image_is_drawn(image, tmp_path):
    assert (draw('Normal', image, None, tmp_path) == image).all()
    empty = DenseDataSample()
    assert (draw('Pointmap', image, empty, tmp_path) == image).all()


@pytest.mark.parametrize(
    'normal, color',
    [
        ((0, 0, -1), (128, 128, 0)),  # faces the camera
        ((1, 0, 0), (255, 128, 128)),  # faces right
        ((0, -1, 0), (128, 0, 128)),  # faces up
        ((-1, 0, 0), (0, 128, 128)),
    ],
)
def test_normal_colors(normal, color):
    assert normal_colors(np.array([[normal]], float))[0, 0].tolist() == list(color)


def test_normal_picture(image, tmp_path):
    picture = draw('Normal', image, sample(), tmp_path, draw_gt=False)[:, WIDTH:]
    assert picture[60, 45].tolist() == [128, 128, 0]  # the sphere's nearest point
    assert picture[60, 75, 0] > 225 and picture[60, 15, 0] < 30  # red grows right
    assert picture[90, 45, 1] > 225 and picture[30, 45, 1] < 30  # green grows down
    assert (picture[~disc()[0].numpy()] == 0).all()


def test_near_is_red_and_background_gray(image, tmp_path):
    picture = draw('Pointmap', image, sample(), tmp_path, draw_gt=False)
    depth = picture[:, WIDTH : 2 * WIDTH]
    assert (depth[~disc()[0].numpy()] == 100).all()
    center, rim = depth[60, 45].astype(int), depth[60, 45 + 33].astype(int)
    assert center[0] > center[2] + 80 and rim[2] > rim[0]


def test_pred_mask_wins_over_gt_mask(image, tmp_path):
    data_sample = sample()
    mask = torch.zeros(1, HEIGHT, WIDTH, dtype=torch.bool)
    mask[:, :10] = True
    data_sample.pred_mask = mask
    picture = draw('Albedo', image, data_sample, tmp_path, draw_gt=False)[:, WIDTH:]
    assert (picture[:10] == 64).all() and (picture[10:] == 100).all()


def test_inverse_depth_norm():
    norm = inverse_depth_norm(1.0, 4.0)
    values = norm(np.array([1.0, 1.6, 4.0]))
    assert np.allclose(values, [0, 0.5, 1])
    assert np.allclose(norm.inverse(np.array([0.0, 0.5, 1.0])), [1, 1.6, 4])
    clipped = inverse_depth_norm(0.01, 1e4)
    assert (clipped.vmin, clipped.vmax) == (0.1, 250)
    assert np.isfinite(inverse_depth_norm(2.0, 2.0)(np.array([2.0]))).all()


def test_depth_bounds():
    depth = np.linspace(0, 100, 101)[None]
    everywhere = np.ones((1, 101), bool)
    assert depth_bounds([depth], everywhere) == (1, 99)
    assert depth_bounds([depth], ~everywhere) == (0, 1)
    flat = np.full((1, 101), 2.0)
    low, high = depth_bounds([flat], everywhere)
    assert low == 2 and high > 2
    assert depth_bounds([np.full((1, 101), np.nan)], everywhere) == (0, 1)


@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize('depth', [-3.0, 0.0, 2.0, 500.0])
def test_color_bar_of_one_depth(depth):
    values = np.full((1, 9), depth)
    norm = inverse_depth_norm(*depth_bounds([values], values == depth))
    bar = color_bar(200, ScalarMappable(norm, colormaps['turbo_r']), 'Z [m]')
    assert bar.shape == (200, 90, 3)


def test_color_bar_is_colored_and_labeled():
    norm = inverse_depth_norm(1.0, 4.0)
    bar = color_bar(400, ScalarMappable(norm, colormaps['turbo_r']), 'Z [m]')
    assert bar.shape == (400, 90, 3) and bar.dtype == np.uint8
    column = bar[:, 15].astype(int)
    colorful = np.ptp(column, axis=1) > 60
    assert colorful.sum() > 300  # the bar itself
    text = bar[:, 40:].astype(int)
    assert (text.max(axis=2) < 100).sum() > 80  # black tick labels and unit


def test_composite_adds_the_background_once():
    foreground = np.full((1, 1, 3), 0.3)
    alpha = np.full((1, 1, 1), 0.5)
    out = composite(foreground, alpha, np.array([0.0, 1.0, 0.4]))
    assert np.allclose(out, [[[0.3, 0.8, 0.5]]])


def test_matte_over_green(image, tmp_path):
    picture = draw('Matting', image, sample(), tmp_path, draw_gt=False)
    alpha, over = picture[:, WIDTH : 2 * WIDTH], picture[:, 2 * WIDTH :]
    assert alpha[60, 45].tolist() == [128] * 3 and alpha[0, 0].tolist() == [0] * 3
    assert over[0, 0].tolist() == [0, 177, 64]
    assert over[60, 45].tolist() == [128, 216, 160]


def test_backends_get_the_picture(image, tmp_path):
    visualizer = VISUALIZERS.build(
        dict(
            type='sapiens2_mm.NormalVisualizer',
            name=f'dense {next(NUMBERS)}',
            vis_backends=[dict(type='LocalVisBackend')],
            save_dir=str(tmp_path),
        )
    )
    visualizer.add_datasample('a', image, sample(), step=3)
    assert len(list(tmp_path.rglob('a_3.png'))) == 1


# ------------------------------------------------------------------------ point clouds


def test_point_cloud_round_trip(image, tmp_path):
    data_sample = sample()
    path = tmp_path / 'тест' / 'a b.ply'
    written = save_point_cloud(
        path,
        data_sample.pred_pointmap,
        colors=image,
        normals=data_sample.pred_normal,
        mask=data_sample.gt_mask,
    )
    vertex = PlyData.read(str(path))['vertex']
    mask = disc()[0].numpy()
    assert written == len(vertex) == mask.sum()
    points = data_sample.pred_pointmap.numpy()[:, mask]
    for name, values in zip('xyz', points, strict=True):
        assert (vertex[name] == values).all() and vertex[name].dtype == np.float32
    assert (vertex['red'] == image[..., 0][mask]).all()
    assert (vertex['nz'] == data_sample.pred_normal.numpy()[2][mask]).all()


def test_point_cloud_leaves_out_what_is_not_finite(tmp_path):
    points = torch.ones(3, 2, 2)
    points[1, 0, 0] = float('nan')
    assert save_point_cloud(tmp_path / 'a.ply', points) == 3


def test_point_cloud_errors(image, tmp_path):
    points = torch.ones(3, 2, 2)
    path = tmp_path / 'a.ply'
    with pytest.raises(ValueError, match=r'all else of their size, got .*\(120, 90\)'):
        save_point_cloud(path, points, colors=image)
    with pytest.raises(ValueError, match='colors must be uint8, got float64'):
        save_point_cloud(path, points, colors=np.ones((2, 2, 3)))
    with pytest.raises(ValueError, match='no point left'):
        save_point_cloud(path, points, mask=np.zeros((2, 2), bool))
    with pytest.raises(ValueError, match=r'\(3, 2\)'):
        save_point_cloud(path, points, mask=np.zeros((3, 2), bool))
    with pytest.raises(ValueError, match=r'points \(3, H, W\) .*\(4, 5, 3\)'):
        save_point_cloud(path, np.ones((4, 5, 3)))
    assert not path.exists()
