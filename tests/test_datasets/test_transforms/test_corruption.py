import numpy as np
import pytest

from sapiens2_mm.datasets.transforms import CoarseDropout, RandomBlur
from sapiens2_mm.registry import TRANSFORMS


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
    assert {blur._draw_kernel() for _ in range(50)} == {3, 5, 7}


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


def test_errors_and_registration():
    with pytest.raises(ValueError, match="kind 'gauss'"):
        RandomBlur(kind='gauss')
    with pytest.raises(ValueError, match='two odd numbers'):
        RandomBlur(kernel_size=(3, 6))
    with pytest.raises(ValueError, match='two shares'):
        CoarseDropout(extent=(0.5, 0.2))
    assert TRANSFORMS.get('sapiens2_mm.CoarseDropout') is CoarseDropout
