"""Bring an image to the size of the network."""

import cv2
import numpy as np
import pytest

from sapiens2_mm.datasets import DenseResize, Letterbox
from sapiens2_mm.registry import TRANSFORMS


def make(name, **kwargs):
    return TRANSFORMS.build(dict(type=f'sapiens2_mm.{name}', **kwargs))


def noise(height=40, width=30, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


class TestAreaCubicResize:
    @pytest.mark.parametrize(
        'size, enlarge, interpolation',
        [
            ((50, 20), 'bicubic', cv2.INTER_AREA),  # narrower, although taller
            ((20, 40), 'bicubic', cv2.INTER_CUBIC),
            ((40, 30), 'bicubic', cv2.INTER_CUBIC),
            ((20, 40), 'bilinear', cv2.INTER_LINEAR),
        ],
    )
    def test_rule(self, size, enlarge, interpolation):
        labels = np.arange(40 * 30).reshape(40, 30) % 7
        before = dict(
            img=noise(), gt_seg_map=labels.astype(np.uint8), seg_fields=['gt_seg_map']
        )
        expected = cv2.resize(before['img'], size[::-1], interpolation=interpolation)
        nearest = cv2.resize(
            before['gt_seg_map'], size[::-1], interpolation=cv2.INTER_NEAREST
        )
        after = make('AreaCubicResize', size=size, enlarge=enlarge).transform(before)
        assert np.array_equal(after['img'], expected)
        assert np.array_equal(after['gt_seg_map'], nearest)
        assert after['img_shape'] == after['pad_shape'] == size
        assert after['scale_factor'] == (size[1] / 30, size[0] / 40)

    def test_labels_of_half_the_sides_come_from_the_pixel_under_their_center(self):
        labels = np.arange(40 * 30).reshape(40, 30) % 251
        before = dict(
            img=noise(), gt_seg_map=labels.astype(np.uint8), seg_fields=['gt_seg_map']
        )
        resize = make('AreaCubicResize', size=(80, 20), label_stride=2)
        after = resize.transform(dict(before))
        assert after['img'].shape == (80, 20, 3) and after['img_shape'] == (80, 20)
        expected = labels[:, [1, 4, 7, 10, 13, 16, 19, 22, 25, 28]]
        assert np.array_equal(after['gt_seg_map'], expected)

    def test_error(self):
        with pytest.raises(ValueError, match=r'label_stride must divide .*got 3'):
            make('AreaCubicResize', size=(80, 20), label_stride=3)
        with pytest.raises(ValueError, match=r"enlarge must be one of .*got 'area'"):
            make('AreaCubicResize', size=(2, 2), enlarge='area')


@pytest.mark.parametrize(
    'size, floor_padding, round_padding',
    [
        ((96, 72), (0, 0, 0, 0), (0, 0, 0, 0)),
        ((40, 200), (0, 0, 54, 55), (0, 0, 54, 55)),  # 19.2 rows
        ((35, 200), (0, 0, 56, 56), (0, 0, 55, 56)),  # 16.8 rows
        ((200, 40), (35, 36, 0, 0), (35, 35, 0, 0)),  # 25.6 columns
        ((1, 1), (0, 0, 16, 16), (0, 0, 16, 16)),
        ((65, 49), (0, 0, 0, 1), (0, 0, 0, 1)),  # 127.3 rows
        ((5000, 2), (47, 48, 0, 0), (47, 48, 0, 0)),  # 0.05 columns, at least 1
    ],
)
def test_letterbox_padding(size, floor_padding, round_padding):
    for rounding, expected in (('floor', floor_padding), ('round', round_padding)):
        results = dict(img=np.full((*size, 3), 9, np.uint8))
        results = Letterbox((128, 96), rounding=rounding)(results)
        assert results['padding'] == expected
        left, right, top, bottom = expected
        assert results['img'].shape == (128, 96, 3)
        inner = results['img'][top : 128 - bottom, left : 96 - right]
        assert (inner == 9).all() and results['img'].sum() == inner.sum()


def test_letterbox_of_half_sized_maps_fills_whole_pixels_of_them():
    results = dict(
        img=np.full((35, 200, 3), 9, np.uint8), gt_mask=np.ones((35, 200), bool)
    )
    results = Letterbox((128, 96), map_stride=2)(results)
    assert results['padding'] == (0, 0, 56, 56)  # 16.8 rows, 8 of the map
    assert (results['img'][56:72] == 9).all() and results['img'].sum() == 16 * 96 * 27
    assert results['gt_mask'].shape == (64, 48)
    assert results['gt_mask'][28:36].all() and results['gt_mask'].sum() == 8 * 48
    for cls in (Letterbox, DenseResize):
        with pytest.raises(ValueError, match=r'map_stride must divide .*got 5'):
            cls((128, 96), map_stride=5)


@pytest.mark.parametrize('area', [True, False])
def test_dense_resize_averages_when_shrinking(area):
    image = np.zeros((8, 8, 3), np.uint8)
    image[:, ::4] = 200
    results = DenseResize((2, 2), area_when_shrinking=area)(dict(img=image))
    assert (results['img'] == (50 if area else 0)).all()
