"""Down-up sampling, Gaussian blur and Gaussian noise."""

import cv2
import numpy as np
import pytest

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
    grey = np.full((200, 200, 3), 128, np.uint8)
    noise = transform.transform(dict(img=grey))['img'].astype(float) - 128
    assert noise.mean() == pytest.approx(0, abs=0.05)
    assert noise.var() == pytest.approx(16 + 1 / 12, rel=0.03)
    white = transform.transform(dict(img=np.full((50, 50, 3), 255, np.uint8)))['img']
    assert white.min() > 200


@pytest.mark.parametrize(
    'name, kwargs, message',
    [
        ('RandomDownUpSample', dict(factor=(0.7, 0.1)), 'factor .* smallest first'),
        ('RandomDownUpSample', dict(factor=(0, 0.1)), r'two numbers in \(0, 1\]'),
        ('RandomGaussianBlur', dict(kernel_size=4), 'must be odd, got 4'),
        ('RandomGaussianBlur', dict(sigma=(0, 1)), 'two positive numbers'),
        ('RandomGaussianNoise', dict(variance=(5, 1)), 'variance .* smallest first'),
    ],
)
def test_errors(name, kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(name, **kwargs)
