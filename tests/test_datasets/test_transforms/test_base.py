import numpy as np
import pytest
from mmcv.transforms.utils import cache_random_params

from sapiens2_mm.datasets import FilterByMask, PointmapTarget
from sapiens2_mm.datasets.transforms.base import (
    RandomTransform,
    check_choice,
    check_range,
    get_entry,
)
from sapiens2_mm.registry import TRANSFORMS


class Draw(RandomTransform):
    """Puts a random number into the results."""

    def parameters(self, size):
        return size, np.random.rand()

    def apply(self, results, parameters):
        results['drawn'] = parameters


def draws(step, count=300):
    return [step(dict(img=np.zeros((4, 3, 3))))['drawn'] for _ in range(count)]


def test_share_of_the_samples():
    np.random.seed(0)
    sample = dict(img=np.zeros((4, 3, 3)))
    changed = ['drawn' in Draw(prob=0.3)(dict(sample)) for _ in range(500)]
    assert np.mean(changed) == pytest.approx(0.3, abs=0.06)
    assert 'drawn' not in Draw(prob=0.0)(dict(sample))
    assert Draw(prob=1.0)(dict(sample))['drawn'][0] == (4, 3)


def test_one_draw_for_many_samples():
    np.random.seed(0)
    step = Draw(prob=1.0)
    assert len(set(draws(step))) == 300
    with cache_random_params(step):
        assert len(set(draws(step))) == 1


def test_check_range():
    for good in ((0.1, 0.1), (0.1, 1), [1, 1]):
        check_range('x', good, highest=1)
    check_range('x', (0, 5), zero=True)
    for bad in ((0, 1), (-1, 1), (1, 0.5), (0.5, 1.5), (float('nan'), 1)):
        with pytest.raises(
            ValueError, match=r'x must be two numbers in \(0, 1\], small'
        ):
            check_range('x', bad, highest=1)
    with pytest.raises(ValueError, match=r'numbers in \[0, inf\], .*got \(-1, 2\)'):
        check_range('x', (-1, 2), zero=True)


def test_check_choice_and_get_entry():
    check_choice('x', 'a', 'ab')
    with pytest.raises(ValueError, match=r"x must be one of \['a', 'b'\], got 'c'"):
        check_choice('x', 'c', ['a', 'b'])
    assert get_entry(dict(k=None), 'k', 'go') is None
    with pytest.raises(ValueError, match=r'sample of a\.jpg has no k; do this'):
        get_entry(dict(img_path='a.jpg'), 'k', 'do this')


def test_a_step_names_itself_if_one_before_it_is_missing():
    with pytest.raises(ValueError, match=r"FilterByMask: .*a\.jpg has no 'gt_mask'"):
        FilterByMask()(dict(img_path='a.jpg'))
    step = PointmapTarget()
    with pytest.raises(ValueError, match=r"PointmapTarget: .* has no 'intrinsics'"):
        step(dict(gt_depth=np.ones((4, 3))))


def test_half_body_without_keypoints():
    pytest.importorskip('mmpose')
    step = TRANSFORMS.build(dict(type='sapiens2_mm.Sapiens2RandomHalfBody', prob=1.0))
    with pytest.raises(ValueError, match=r"HalfBody: .* has no 'keypoints"):
        step(dict(img_path='a.jpg', upper_body_ids=[0], lower_body_ids=[1]))
