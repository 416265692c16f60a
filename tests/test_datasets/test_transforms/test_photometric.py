import cv2
import numpy as np
import pytest

from sapiens2_mm.datasets import PhotometricDistortion, RandomSolarize
from sapiens2_mm.datasets.transforms.photometric import _Change, _distort


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(0, 256, (16, 12, 3), dtype=np.uint8)


def change(**values):
    nothing = _Change(None, None, False, None, None)
    return nothing._replace(**values)


def test_nothing_changes_nothing(image):
    assert (_distort(image, change()) == image).all()
    assert (PhotometricDistortion(prob=0.0)(dict(img=image))['img'] == image).all()


def test_brightness_and_contrast(image):
    wide = image.astype(np.float64)
    brighter = _distort(image, change(brightness=20.4))
    assert (brighter == (wide + 20.4).round().clip(0, 255)).all()
    for first in (True, False):
        softer = _distort(image, change(contrast=0.5, contrast_first=first))
        assert (softer == (wide / 2).round()).all()


def test_hue_turns_within_180():
    red = np.full((1, 1, 3), (0, 0, 200), np.uint8)
    hsv = cv2.cvtColor(_distort(red, change(hue=-10)), cv2.COLOR_BGR2HSV)
    assert hsv[0, 0].tolist() == [170, 255, 200]


def test_saturation_zero_is_gray(image):
    gray = _distort(image, change(saturation=0.0))
    assert (gray == gray.max(axis=2, keepdims=True)).all()


def test_draws_cover_their_ranges():
    np.random.seed(0)
    distort = PhotometricDistortion()
    draws = [distort.draw((16, 12)) for _ in range(400)]
    for name, low, high in (
        ('brightness', -32, 32),
        ('contrast', 0.5, 1.5),
        ('saturation', 0.5, 1.5),
        ('hue', -18, 18),
    ):
        values = [getattr(d, name) for d in draws]
        drawn = [v for v in values if v is not None]
        assert 0.4 < len(drawn) / 400 < 0.6
        assert low <= min(drawn) < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < max(drawn) <= high
    assert 0.4 < np.mean([d.contrast_first for d in draws]) < 0.6


def test_the_input_is_not_written_to(image):
    before = image.copy()
    np.random.seed(0)
    for _ in range(20):
        out = PhotometricDistortion()(dict(img=image))['img']
        assert out.dtype == np.uint8 and out.shape == image.shape
    RandomSolarize(prob=1.0)(dict(img=image))
    assert (image == before).all()


def test_solarize():
    image = np.array([[[0, 128, 129], [200, 255, 127]]], np.uint8)
    out = RandomSolarize(prob=1.0)(dict(img=image))['img']
    assert out.tolist() == [[[0, 128, 126], [55, 0, 127]]] and out.dtype == np.uint8
    assert RandomSolarize(prob=0.0)(dict(img=image))['img'] is image
