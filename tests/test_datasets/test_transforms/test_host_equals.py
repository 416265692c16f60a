"""Faster forms of the hosts' transforms: equal pixels, equal draws."""

import numpy as np
import pytest

from sapiens2_mm.registry import TRANSFORMS

SEG_CROP = dict(crop_size=(24, 18), cat_max_ratio=0.6)
PAIRS = [
    ('mmpose.PhotometricDistortion', 'PosePhotometricDistortion', {}),
    ('mmseg.PhotoMetricDistortion', 'SegPhotometricDistortion', {}),
    ('mmseg.RandomCrop', 'SegRandomCrop', SEG_CROP),
    ('mmseg.RandomCrop', 'SegRandomCrop', {**SEG_CROP, 'crop_size': (99, 18)}),
    ('mmseg.RandomCrop', 'SegRandomCrop', {**SEG_CROP, 'ignore_index': 1}),
]


def sample(number):
    rng = np.random.default_rng(number)
    labels = np.zeros((40, 30), np.uint8)
    labels[rng.integers(40) :, : rng.integers(30)] = 1
    labels[: rng.integers(20), rng.integers(30) :] = 255
    image = rng.integers(0, 256, (40, 30, 3), np.uint8)
    return dict(img=image, gt_seg_map=labels, seg_fields=['gt_seg_map'])


@pytest.mark.parametrize('host, ours, kwargs', PAIRS)
def test_equals_the_transform_of_the_host(host, ours, kwargs):
    pytest.importorskip(host.split('.')[0])
    results = []
    for name in (host, f'sapiens2_mm.{ours}'):
        transform = TRANSFORMS.build(dict(type=name, **kwargs))
        np.random.seed(0)
        results.append([transform(sample(number)) for number in range(60)])
    for expected, got in zip(*results, strict=True):
        assert np.array_equal(expected['img'], got['img'])
        assert np.array_equal(expected['gt_seg_map'], got['gt_seg_map'])
