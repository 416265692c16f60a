"""From the matte file to the packed sample."""

import cv2
import numpy as np
import pytest
from mmengine.dataset import Compose

from sapiens2_mm.datasets import (
    DenseRandomFlip,
    DenseResize,
    LoadMatte,
    PackDenseInputs,
    PhotometricDistortion,
    RandomAlphaCrop,
    RandomJpeg,
    RandomMatteBackground,
    RandomMatteRotate,
)

SIZE = (40, 30)


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(0, 256, (*SIZE, 3), dtype=np.uint8)


def write(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(cv2.imencode('.png', array)[1].tobytes())
    return str(path)


def load(tmp_path, image, matte, **kwargs):
    path = write(tmp_path / 'matte.png', matte)
    results = dict(img=image, img_path='a.jpg', alpha_path=path, ori_shape=SIZE)
    return LoadMatte(**kwargs)(results)


def half_matte():
    """Left third 0, middle third one half, right third opaque."""
    matte = np.zeros(SIZE, np.uint8)
    matte[:, 10:20] = 128
    matte[:, 20:] = 255
    return matte


@pytest.mark.parametrize('bits', [8, 16])
def test_alpha_alone(tmp_path, image, bits):
    matte = half_matte()
    stored = matte if bits == 8 else matte.astype(np.uint16) * 257
    results = load(tmp_path, image, stored)
    assert np.allclose(results['gt_alpha'], matte / 255)
    assert results['gt_alpha'].dtype == results['gt_foreground'].dtype == np.float32
    known = results['gt_foreground_mask']
    assert known[:, :10].all() and not known[:, 10:20].any() and known[:, 20:].all()
    foreground = results['gt_foreground']
    assert (foreground[:, :10] == 0).all()
    assert np.allclose(foreground[:, 20:], image[:, 20:, ::-1] / 255)


def test_rgba_colors_are_multiplied(tmp_path, image):
    matte = np.dstack([np.full((*SIZE, 3), (10, 20, 200), np.uint8), half_matte()])
    results = load(tmp_path, image, matte)  # written as BGRA
    expected = np.array([200, 20, 10]) / 255 * (half_matte() / 255)[..., None]
    assert np.allclose(results['gt_foreground'], expected, atol=1e-6)
    assert results['gt_foreground_mask'].all()


def test_label_maps_are_hard_mattes(tmp_path, image):
    labels = np.zeros(SIZE, np.uint8)
    labels[5:20, 5:20] = 7
    results = load(tmp_path, image, labels, binary=True)
    assert (results['gt_alpha'] == (labels > 0)).all()
    assert results['gt_foreground_mask'].all()


def test_matte_errors(tmp_path, image):
    for matte in (np.zeros((4, 4), np.uint8), np.zeros((*SIZE, 3), np.uint8)):
        with pytest.raises(
            ValueError, match=r'matte\.png: expected .* 1 or 4 channels'
        ):
            load(tmp_path, image, matte)
    with pytest.raises(ValueError, match=r'the sample of a\.jpg has no alpha_path'):
        LoadMatte()(dict(img=image, img_path='a.jpg'))
    for value in (255.0, -0.1, np.nan):
        np.save(tmp_path / 'matte.npy', np.full(SIZE, value))
        with pytest.raises(ValueError, match=r'matte\.npy: expected .* in \[0, 1\]'):
            LoadMatte()(dict(img=image, alpha_path=str(tmp_path / 'matte.npy')))


def test_composite_in_linear_light(tmp_path, image):
    write(tmp_path / 'backgrounds' / 'x' / 'b.png', np.full((8, 8, 3), 255, np.uint8))
    matte = np.dstack([np.zeros((*SIZE, 3), np.uint8), half_matte()])
    results = load(tmp_path, image, matte)
    step = RandomMatteBackground(str(tmp_path / 'backgrounds'))
    out = step(results)['img']
    assert (out[:, :10] == 255).all() and (out[:, 20:] == 0).all()
    # half of the light is 188 in sRGB, not 127
    assert np.abs(out[:, 10:20].astype(int) - 187).max() <= 2
    known_partly = load(tmp_path, image, half_matte())
    assert (step(known_partly)['img'] == image).all()
    never = RandomMatteBackground(str(tmp_path / 'backgrounds'), prob=0.0)
    assert (never(load(tmp_path, image, matte))['img'] == image).all()
    with pytest.raises(FileNotFoundError, match='no file in'):
        RandomMatteBackground(str(tmp_path / 'nothing'))


def test_alpha_crop_keeps_the_aspect(tmp_path, image):
    matte = np.zeros(SIZE, np.uint8)
    matte[12:20, 10:14] = 255
    results = load(tmp_path, image, matte)
    results['intrinsics'] = np.array([[50.0, 0, 14], [0, 50, 19], [0, 0, 1]])
    results = RandomAlphaCrop(prob=1.0, margin=(0.0, 0.0))(results)
    assert results['intrinsics'][:2, 2].tolist() == [14 - 10 + 1, 19 - 12]
    height, width = results['img'].shape[:2]
    assert (height, width) == (8, 6) == results['img_shape']
    assert (results['gt_alpha'][:, 1:5] == 1).all() and results['gt_alpha'].sum() == 32
    assert (results['img'][:, 1:5] == image[12:20, 10:14]).all()
    assert (results['img'][:, [0, 5]] == 255).all()  # white, alpha 0, and known
    assert results['gt_foreground_mask'].all()
    empty = load(tmp_path, image, np.zeros(SIZE, np.uint8))
    assert RandomAlphaCrop(prob=1.0)(empty)['img'].shape[:2] == SIZE


def test_rotation(tmp_path, image):
    results = load(tmp_path, image, np.full(SIZE, 255, np.uint8))
    np.random.seed(0)
    step = RandomMatteRotate(prob=1.0, max_angle=60)
    results = step(results)
    corner = results['gt_alpha'][0, 0]
    assert corner == 0 and (results['img'][0, 0] == 255).all()
    assert results['gt_alpha'][20, 15] == 1
    assert results['gt_foreground_mask'].dtype == bool
    assert results['gt_foreground_mask'].all()
    with pytest.raises(ValueError, match='do not rotate with the image'):
        step(dict(img=image, gt_normal=np.zeros((*SIZE, 3), np.float32)))


def test_rotation_of_depth(image):
    np.random.seed(0)
    mask = np.ones(SIZE, bool)
    results = dict(img=image, gt_depth=np.full(SIZE, 2, np.float32), gt_mask=mask)
    results = RandomMatteRotate(prob=1.0, max_angle=60, border=0)(results)
    assert not results['img'][0, 0].any() and not results['gt_mask'][0, 0]
    assert results['gt_mask'].dtype == bool
    assert (results['gt_depth'] == 2 * results['gt_mask']).all()


def test_jpeg(image):
    flat = np.full((32, 32, 3), 90, np.uint8)
    assert (
        np.abs(RandomJpeg(prob=1.0)(dict(img=flat))['img'].astype(int) - 90).max() < 3
    )
    assert (RandomJpeg(prob=1.0)(dict(img=image))['img'] != image).any()
    assert RandomJpeg(prob=0.0)(dict(img=image))['img'] is image


def test_distortion_changes_image_and_foreground_alike(tmp_path, image):
    np.random.seed(3)
    results = load(tmp_path, image, half_matte())
    before = results['gt_foreground'].copy()
    results = PhotometricDistortion()(results)
    opaque = results['gt_alpha'] == 1
    rgb = results['img'][..., ::-1] / 255
    assert np.abs(results['gt_foreground'][opaque] - rgb[opaque]).max() < 1e-6
    assert (results['gt_foreground'][results['gt_alpha'] == 0] == 0).all()
    assert (results['gt_foreground'] != before).any()
    assert results['gt_foreground'].dtype == np.float32


def test_whole_pipeline(tmp_path, image):
    results = load(tmp_path, image, half_matte())
    np.random.seed(0)
    packed = Compose(
        [
            RandomJpeg(),
            RandomAlphaCrop(),
            RandomMatteRotate(),
            DenseRandomFlip(0.5),
            DenseResize((64, 48)),
            PhotometricDistortion(prob=0.5),
            PackDenseInputs(),
        ]
    )(results)
    sample = packed['data_samples']
    assert packed['inputs'].shape == (3, 64, 48)
    assert sample.gt_alpha.shape == sample.gt_foreground_mask.shape == (1, 64, 48)
    assert sample.gt_foreground.min() >= 0 and sample.gt_foreground.max() <= 1
