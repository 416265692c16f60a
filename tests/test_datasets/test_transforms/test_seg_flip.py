import numpy as np
import pytest

from sapiens2_mm.registry import TRANSFORMS


def make(name, **kwargs):
    return TRANSFORMS.build(dict(type=f'sapiens2_mm.{name}', **kwargs))


def noise(height=40, width=30, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def sample(labels, img=None, **extra):
    labels = np.array(labels, np.uint8)
    img = noise(*labels.shape) if img is None else img
    return dict(img=img, gt_seg_map=labels, seg_fields=['gt_seg_map'], **extra)


class TestSegFlip:
    def test_swaps_pairs(self):
        before = sample([[0, 5, 14, 255]], flip_pairs=[(5, 14)])
        image = before['img'].copy()
        after = make('SegFlip', prob=1.0).transform(before)
        assert after['gt_seg_map'].tolist() == [[255, 5, 14, 0]]
        assert np.array_equal(after['img'], image[:, ::-1])
        assert after['flip'] is True and after['flip_direction'] == 'horizontal'
        again = make('SegFlip', prob=1.0).transform(after)
        assert again['gt_seg_map'].tolist() == [[0, 5, 14, 255]]

    def test_partner_that_is_no_class_is_ignored(self):
        for pair in ((1, 255), (255, 1)):
            after = make('SegFlip', prob=1.0).transform(
                sample([[0, 1, 255]], flip_pairs=[pair])
            )
            assert after['gt_seg_map'].tolist() == [[255, 255, 0]]

    def test_own_pairs_win_and_travel_on(self):
        flip = make('SegFlip', prob=1.0, flip_pairs=[(1, 2)])
        after = flip.transform(sample([[1, 3]], flip_pairs=[(1, 3)]))
        assert after['gt_seg_map'].tolist() == [[3, 2]]
        assert after['flip_pairs'] == [(1, 2)]

    def test_probability(self):
        np.random.seed(0)
        never = make('SegFlip', prob=0.0).transform(sample([[1, 2]]))
        assert never['flip'] is False and never['flip_direction'] is None
        half = make('SegFlip', flip_pairs=[])
        flips = [half.transform(sample([[1, 2]]))['flip'] for _ in range(300)]
        assert np.mean(flips) == pytest.approx(0.5, abs=0.1)

    def test_unknown_pairs(self):
        with pytest.raises(ValueError, match='has no flip_pairs'):
            make('SegFlip', prob=1.0).transform(sample([[1, 2]]))
        without_mask = make('SegFlip', prob=1.0).transform(dict(img=noise()))
        assert without_mask['flip']

    def test_pair_outside_the_classes(self):
        flip = make('SegFlip', prob=1.0, flip_pairs=[(1, 7)])
        with pytest.raises(
            ValueError, match=r'\(1, 7\) must be .* ids of the 3 classes'
        ):
            flip.transform(sample([[1, 2]], num_classes=3))
        with pytest.raises(ValueError, match=r"\('left', 'right'\) must be"):
            make('SegFlip', flip_pairs=[('left', 'right')])
