"""Blur, noise, down-up sampling and dropout."""

import cv2
import numpy as np
import pytest

from sapiens2_mm.datasets.transforms import CoarseDropout, RandomBlur
from sapiens2_mm.registry import TRANSFORMS

KINDS = ['RandomDownUpSample', 'RandomGaussianBlur', 'RandomGaussianNoise']


def make(name, **kwargs):
    return TRANSFORMS.build(dict(type=f'sapiens2_mm.{name}', **kwargs))


def picture(height=40, width=30):
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)


@pytest.mark.parametrize('name', KINDS)
def test_probability_shape_and_type(name):
    image = picture()
    np.random.seed(0)
    assert make(name, prob=0.0).transform(dict(img=image))['img'] is image
    out = make(name, prob=1.0).transform(dict(img=image))['img']
    assert out.shape == image.shape and out.dtype == np.uint8
    assert not np.array_equal(out, image)
    assert np.array_equal(image, picture()), 'the input must not change'
    half = make(name, prob=0.3)
    changed = [half.transform(dict(img=image))['img'] is not image for _ in range(300)]
    assert np.mean(changed) == pytest.approx(0.3, abs=0.08)


def test_down_up_loses_detail_but_keeps_the_mean():
    np.random.seed(0)
    image = picture(200, 160)
    transform = make('RandomDownUpSample', prob=1.0, factor=(0.2, 0.3))
    for _ in range(8):
        out = transform.transform(dict(img=image))['img'].astype(float)
        assert out.mean() == pytest.approx(image.mean(), abs=6)
        rows = np.abs(np.diff(out, axis=0)).mean()
        assert rows < np.abs(np.diff(image.astype(float), axis=0)).mean()


def test_down_up_survives_one_pixel():
    out = make('RandomDownUpSample', prob=1.0).transform(dict(img=picture(1, 1)))
    assert out['img'].shape == (1, 1, 3)


def test_blur_is_opencvs_gaussian_of_the_given_width():
    image = picture()
    transform = make('RandomGaussianBlur', prob=1.0, sigma=(1.5, 1.5))
    expected = cv2.GaussianBlur(image, (3, 3), 1.5)
    assert np.array_equal(transform.transform(dict(img=image))['img'], expected)


def test_noise_has_the_given_variance_and_is_clipped():
    np.random.seed(0)
    transform = make('RandomGaussianNoise', prob=1.0, variance=(16, 16))
    gray = np.full((200, 200, 3), 128, np.uint8)
    noise = transform.transform(dict(img=gray))['img'].astype(float) - 128
    assert noise.mean() == pytest.approx(0, abs=0.05)
    assert noise.var() == pytest.approx(16 + 1 / 12, rel=0.03)
    white = transform.transform(dict(img=np.full((50, 50, 3), 255, np.uint8)))['img']
    assert white.min() > 200


@pytest.mark.parametrize(
    'name, kwargs, message',
    [
        ('RandomDownUpSample', dict(factor=(0.7, 0.1)), 'factor .* smallest first'),
        ('RandomDownUpSample', dict(factor=(0, 0.1)), r'two numbers in \(0, 1\]'),
        ('RandomGaussianBlur', dict(sigma=(0, 1)), r'\(0, inf\], .* got \(0, 1\)'),
        ('RandomGaussianBlur', dict(kernel_size=4), 'kernel_size must be odd, got 4'),
        ('RandomGaussianNoise', dict(variance=(-1, 1)), r'two numbers in \[0, inf'),
        ('RandomGaussianNoise', dict(variance=(5, 1)), 'variance .* smallest first'),
    ],
)
def test_errors(name, kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(name, **kwargs)


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(1, 255, (40, 30, 3), dtype=np.uint8)


@pytest.mark.parametrize('kind', ['box', 'median'])
def test_blur(image, kind):
    np.random.seed(0)
    blurred = RandomBlur(kind=kind, prob=1.0)(dict(img=image.copy()))['img']
    assert blurred.dtype == np.uint8 and blurred.shape == image.shape
    assert blurred.std() < 0.6 * image.std()
    same = RandomBlur(kind=kind, prob=0.0)(dict(img=image.copy()))['img']
    np.testing.assert_array_equal(same, image)


def test_box_blur_is_the_mean_of_its_window(image):
    blurred = RandomBlur(kind='box', prob=1.0, kernel_size=(3, 3))(dict(img=image))
    mean = image[9:12, 4:7].reshape(-1, 3).mean(axis=0)
    np.testing.assert_allclose(blurred['img'][10, 5], mean, atol=0.51)


def test_kernels_are_odd_and_in_range():
    np.random.seed(0)
    blur = RandomBlur(prob=1.0, kernel_size=(3, 7))
    assert {blur.parameters((40, 30)) for _ in range(50)} == {3, 5, 7}


def test_dropout_is_one_rectangle(image):
    np.random.seed(0)
    for _ in range(20):
        dropped = CoarseDropout()(dict(img=image))['img']
        rows, columns = np.nonzero((dropped == 0).all(axis=-1))
        height = np.ptp(rows) + 1
        width = np.ptp(columns) + 1
        assert len(rows) == height * width
        assert 8 <= height <= 16 and 6 <= width <= 12
        outside = np.ones(image.shape[:2], dtype=bool)
        outside[rows, columns] = False
        np.testing.assert_array_equal(dropped[outside], image[outside])
    assert (image > 0).all()  # the input is not changed in place
    same = CoarseDropout(prob=0.0)(dict(img=image))['img']
    np.testing.assert_array_equal(same, image)


def test_blur_and_dropout_errors():
    with pytest.raises(ValueError, match=r"one of \['box', 'median'\], got 'gauss'"):
        RandomBlur(kind='gauss')
    with pytest.raises(ValueError, match='two odd numbers'):
        RandomBlur(kernel_size=(3, 6))
    with pytest.raises(ValueError, match=r'extent .* in \(0, 1\].*\(0.5, 0.2\)'):
        CoarseDropout(extent=(0.5, 0.2))
    assert TRANSFORMS.get('sapiens2_mm.CoarseDropout') is CoarseDropout
