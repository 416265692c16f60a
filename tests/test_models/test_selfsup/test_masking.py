import numpy as np
import pytest
import torch

from sapiens2_mm.models.selfsup import BlockPatchMask, TokenMask


def num_edges(mask: torch.Tensor, grid: tuple[int, int]) -> int:
    """Neighboring tokens of which one is masked."""
    m = mask.view(-1, *grid).int()
    return int(m.diff(dim=1).abs().sum() + m.diff(dim=2).abs().sum())


@pytest.mark.parametrize('block_prob', [0.0, 1.0, 0.4])
@pytest.mark.parametrize(
    ('grid', 'masked'), [((64, 48), 2304), ((16, 12), 144), ((4, 3), 9)]
)
def test_counts_are_exact(block_prob, grid, masked):
    mask = BlockPatchMask(block_prob=block_prob)(2, 6, grid)
    num_tokens = grid[0] * grid[1]
    assert mask.mask.shape == (12, num_tokens)
    assert (mask.mask.sum(1) == masked).all()
    assert mask.ids_keep.shape == (12, num_tokens - masked)
    assert mask.ids_keep.dtype == torch.long


def test_indices_agree_with_the_mask():
    mask = BlockPatchMask()(2, 5, (16, 12))
    assert (mask.ids_keep.diff(dim=1) > 0).all()  # ascending
    assert not mask.mask.gather(1, mask.ids_keep).any()


def test_hand_made_mask():
    """Two views of two samples: all samples of the first view first."""
    ids_keep = np.array([[[1, 3], [0, 1]], [[2, 3], [0, 3]]])
    mask = TokenMask.from_ids_keep(ids_keep, 4)
    assert mask.ids_keep.tolist() == [[1, 3], [0, 1], [2, 3], [0, 3]]
    assert mask.mask.int().tolist() == [
        [1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 0]
    ]  # fmt: skip


def test_kinds_differ_in_edges_and_frequency():
    grid = (64, 48)
    patches = num_edges(BlockPatchMask(block_prob=0.0)(1, 8, grid).mask, grid)
    blocks = num_edges(BlockPatchMask(block_prob=1.0)(1, 8, grid).mask, grid)
    assert blocks < patches / 3
    mixed = BlockPatchMask(block_prob=0.4)(2, 500, (16, 12)).mask
    edges = torch.tensor([num_edges(m, (16, 12)) for m in mixed])
    # The two kinds do not overlap in edges at this grid; the coin is per view.
    share = float((edges < 110).float().mean())
    assert abs(share - 0.4) < 0.06
    assert not torch.equal(mixed[:500], mixed[500:])


def test_masks_do_not_depend_on_batching():
    generator = BlockPatchMask()
    whole = generator(2, 4, (16, 12), first_sample=10).mask.view(2, 4, -1)
    parts = [generator(2, 2, (16, 12), first_sample=n).mask for n in (10, 12)]
    parts = [part.view(2, 2, -1) for part in parts]
    assert torch.equal(whole, torch.cat(parts, dim=1))


def test_streams_and_seeds_differ():
    first, second = BlockPatchMask(), BlockPatchMask()
    second.stream = 1
    third = BlockPatchMask(seed=1)
    masks = [g(1, 1, (16, 12)).mask for g in (first, second, third)]
    assert not torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


def test_rectangles_larger_than_the_grid_are_no_problem():
    generator = BlockPatchMask(block_prob=1.0, max_aspect=100.0, max_block_ratio=1.0)
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert generator.draw_blocks(rng, (3, 40), 90).sum() == 90


@pytest.mark.parametrize(
    ('kwargs', 'message'),
    [
        (dict(mask_ratio=1.1), r'mask_ratio must be in \[0, 1\], got 1.1'),
        (dict(block_prob=1.5), r'block_prob must be in \[0, 1\], got 1.5'),
        (dict(min_block=0), r'min_block must be in \[1, inf\], got 0'),
        (dict(max_aspect=0.5), r'max_aspect must be in \[1, inf\], got 0.5'),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        BlockPatchMask(**kwargs)


def test_grid_too_small():
    with pytest.raises(ValueError, match=r'0 tokens of a grid of \(1, 1\); use larger'):
        BlockPatchMask()(1, 1, (1, 1))
