import cv2
import numpy as np
import pytest

from sapiens2_mm.datasets.transforms import MultiViewCrop
from sapiens2_mm.datasets.transforms.multi_view import RandomView
from sapiens2_mm.registry import TRANSFORMS


def picture(height: int = 160, width: int = 120) -> np.ndarray:
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)


def test_views_come_in_order_with_their_sizes():
    transform = TRANSFORMS.build(
        dict(
            type='sapiens2_mm.MultiViewCrop',
            views=[
                dict(num_views=2, size=(64, 48), area=(0.5, 1.0)),
                dict(num_views=4, size=(32, 24), area=(0.2, 0.7), jitter_prob=1.0),
            ],
        )
    )
    results = transform(dict(img=picture(), rng=np.random.default_rng(0)))
    shapes = [view.shape for view in results['img']]
    assert shapes == [(64, 48, 3)] * 2 + [(32, 24, 3)] * 4
    assert all(view.dtype == np.uint8 for view in results['img'])
    assert not np.array_equal(results['img'][0], results['img'][1])


def test_randomness_is_the_given_generator():
    transform = MultiViewCrop(
        [dict(num_views=3, size=(32, 24), area=(0.2, 0.7), jitter_prob=0.8,
              blur_prob=0.5, solarize_prob=0.5, grayscale_prob=0.5)]
    )  # fmt: skip
    runs = []
    for seed in (5, 5, 6):
        np.random.seed(seed + len(runs))  # must not matter
        runs.append(transform(dict(img=picture(), rng=np.random.default_rng(seed))))
    first, second, third = (np.stack(run['img']) for run in runs)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, third)


def test_without_a_generator_the_global_state_decides():
    transform = MultiViewCrop([dict(num_views=1, size=(32, 24), area=(0.2, 0.7))])
    views = []
    for seed in (1, 1, 2):
        np.random.seed(seed)
        views.append(transform(dict(img=picture()))['img'][0])
    assert np.array_equal(views[0], views[1])
    assert not np.array_equal(views[0], views[2])


@pytest.mark.parametrize('shape', [(160, 120), (120, 160), (400, 50), (50, 400)])
def test_crops_keep_to_area_and_image(shape):
    view = RandomView((64, 48), area=(0.2, 0.7))
    rng = np.random.default_rng(0)
    for _ in range(200):
        top, left, height, width = view.draw_crop(shape, rng)
        assert top >= 0 and top + height <= shape[0] and height > 0
        assert left >= 0 and left + width <= shape[1] and width > 0
        assert height * width <= 0.72 * shape[0] * shape[1]


def test_area_and_aspect_are_spread_over_their_range():
    view = RandomView((64, 48), area=(0.2, 0.5))
    rng = np.random.default_rng(0)
    crops = np.array([view.draw_crop((1600, 1200), rng)[2:] for _ in range(2000)])
    area = crops.prod(1) / (1600 * 1200)
    assert 0.199 < area.min() < 0.21 and 0.49 < area.max() < 0.501
    assert abs(area.mean() - 0.35) < 0.01  # uniform in area, not in side
    aspect = np.log(crops[:, 1] / crops[:, 0] / 0.75)
    assert abs(aspect.mean()) < 0.02
    assert abs(np.abs(aspect).max() - np.log(4 / 3)) < 0.02


def test_impossible_crops_fall_back_to_the_largest_one_anywhere():
    # 0.75 of the area at aspect 3:4 never fits into a strip
    view = RandomView((64, 48), area=(0.75, 1.0))
    rng = np.random.default_rng(0)
    crops = [view.draw_crop((30, 400), rng) for _ in range(50)]
    assert {crop[2:] for crop in crops} == {(30, 22)}
    assert len({crop[1] for crop in crops}) > 20


def test_global_views_keep_the_colors():
    image = np.zeros((100, 80, 3), np.uint8)
    image[:] = (10, 120, 240)
    view = RandomView((64, 48), area=(0.5, 1.0))
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert (view(image, rng) == (10, 120, 240)).all()


def test_shrinking_is_antialiased():
    image = np.zeros((512, 384, 3), np.uint8)
    image[:, ::2] = 255  # one-pixel stripes: gray once they are shrunk
    view = RandomView((64, 48), area=(1.0, 1.0), aspect_jitter=1.0, flip_prob=0.0)
    out = view(image, np.random.default_rng(0))
    assert abs(float(out[4:-4, 4:-4].mean()) - 127.5) < 1
    assert out[4:-4, 4:-4].std() < 2


def test_flip():
    image = picture(64, 48)
    view = RandomView((64, 48), area=(1.0, 1.0), aspect_jitter=1.0, flip_prob=1.0)
    out = view(image, np.random.default_rng(0))
    assert np.array_equal(out, image[:, ::-1])


def identity(**kwargs) -> RandomView:
    return RandomView(
        (64, 48), area=(1.0, 1.0), aspect_jitter=1.0, flip_prob=0.0, **kwargs
    )


def test_solarize_gray_and_blur():
    image = picture(64, 48)
    rng = np.random.default_rng(0)
    solarized = identity(solarize_prob=1.0)(image, rng)
    assert np.array_equal(solarized, np.where(image >= 128, 255 - image, image))
    gray = identity(grayscale_prob=1.0)(image, rng)
    expected = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    assert all(np.array_equal(gray[..., c], expected) for c in range(3))
    blurred = identity(blur_prob=1.0, blur_sigma=(2.0, 2.0))(image, rng)
    assert np.array_equal(blurred, cv2.GaussianBlur(image, (9, 9), 2.0))


def test_jitter_of_one_kind_by_hand():
    image = picture(64, 48)
    only = dict(jitter_prob=1.0, brightness=0.0, contrast=0.0, saturation=0.0, hue=0.0)
    rng = np.random.default_rng(0)
    assert np.array_equal(identity(**only)(image, rng), image)
    bright = identity(**{**only, 'brightness': 0.4})(image, rng).astype(float)
    dark = image < 100  # not clipped by a factor of up to 1.4
    factors = bright[dark & (image > 50)] / image[dark & (image > 50)]
    assert factors.std() < 0.01 and 0.6 <= factors.mean() <= 1.4
    shifted = identity(**{**only, 'hue': 0.5})(image, rng)
    # hue leaves the largest and the smallest channel of a pixel nearly alone
    assert np.abs(shifted.max(2).astype(int) - image.max(2)).max() <= 3


@pytest.mark.parametrize('area', [(0.0, 1.0), (0.9, 0.5), (0.5, 1.5)])
def test_wrong_area(area):
    with pytest.raises(ValueError, match=r'area must be two numbers in \(0, 1\]'):
        RandomView((64, 48), area)
