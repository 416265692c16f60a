import numpy as np
import pytest

from sapiens2_mm.datasets import FilterByMask, FilterFlatAlbedo, FilterForeground


@pytest.mark.parametrize(
    'count, kept', [(0, False), (15, False), (16, True), (96, True), (97, False)]
)
def test_filter_by_mask(count, kept):
    mask = (np.arange(100) < count).reshape(10, 10)
    assert (FilterByMask()(dict(gt_mask=mask)) is not None) == kept


def test_filter_flat_albedo():
    albedo = np.full((4, 4, 3), 0.5, np.float32)
    mask = np.ones((4, 4), bool)
    assert FilterFlatAlbedo()(dict(gt_albedo=albedo, gt_mask=mask)) is None
    assert FilterFlatAlbedo()(dict(gt_albedo=albedo, gt_mask=~mask)) is None
    albedo[:2, :, 1] = 0.6
    assert FilterFlatAlbedo()(dict(gt_albedo=albedo, gt_mask=mask)) is not None


def test_filter_foreground():
    step = FilterForeground(min_ratio=0.25)
    for labels, kept in (
        ([[0, 1, 0, 0]], True),
        ([[0, 255, 0, 0]], False),
        ([[0, 0, 0, 0, 1]], False),
    ):
        assert (step(dict(gt_seg_map=np.array(labels))) is not None) == kept
