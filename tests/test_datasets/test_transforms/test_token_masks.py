from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('mmpretrain')

from sapiens2_mm.models.selfsup import BlockPatchMask
from sapiens2_mm.registry import TRANSFORMS


def drawn(*draw: int, seed: int | None = None, follow: bool = True) -> dict:
    step = TRANSFORMS.build(dict(type='sapiens2_mm.DrawTokenMasks'))
    if follow:
        step.follow(
            SimpleNamespace(
                mask_generator=BlockPatchMask(seed=seed),
                num_global_views=2,
                backbone=SimpleNamespace(stride=16),
            )
        )
    views = [np.zeros((128, 96, 3)), np.zeros((128, 96, 3)), np.zeros((64, 48, 3))]
    return step(dict(img=views, draw=draw))


def test_masks_of_the_global_views():
    ids_keep = drawn(5)['ids_keep']
    assert ids_keep.shape == (2, 12)  # a quarter of 8 x 6 tokens
    assert (np.diff(ids_keep) > 0).all() and ids_keep.max() < 48
    assert not np.array_equal(*ids_keep)


def test_draw_and_seed_alone_decide():
    masks = [
        drawn(*draw, seed=seed)['ids_keep']
        for draw, seed in (
            ((5,), 0),
            ((5,), None),
            ((5,), 1),
            ((6,), 0),
            ((5, 1, 2), 0),
        )
    ]
    assert np.array_equal(masks[0], masks[1])
    assert not any(np.array_equal(masks[0], other) for other in masks[2:])


def test_without_a_model_nothing_is_drawn():
    assert 'ids_keep' not in drawn(5, follow=False)
