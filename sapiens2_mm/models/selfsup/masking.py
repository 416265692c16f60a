"""Which patches the student does not see."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sapiens2_mm.registry import TASK_UTILS

_MAX_FAILURES = 10  # rectangles in a row that cover nothing new


@dataclass(frozen=True)
class TokenMask:
    """Masks of a batch; every row masks the same number of tokens.

    Args:
        mask: (B, N) bool, True where a token is masked.
        ids_keep: (B, n) long, ascending indices of the visible tokens.
    """

    mask: Tensor
    ids_keep: Tensor

    @classmethod
    def from_ids_keep(
        cls, ids_keep: np.ndarray, num_tokens: int, device: torch.device | str = 'cpu'
    ) -> 'TokenMask':
        """Masks by their visible tokens, all samples of the first view first.

        Args:
            ids_keep: (V, B, n) int, ascending, of V views of B samples.
            num_tokens: N.
            device: where the result goes; without waiting for it.
        """
        ids_keep = torch.from_numpy(ids_keep).flatten(0, 1)
        ids_keep = ids_keep.to(device, non_blocking=True).long()
        mask = torch.ones(len(ids_keep), num_tokens, dtype=torch.bool, device=device)
        return cls(mask.scatter_(1, ids_keep, False), ids_keep)


@TASK_UTILS.register_module()
class BlockPatchMask:
    """Draws masks that are made of rectangles, or of single patches.

    Each mask covers exactly ``int(mask_ratio * N)`` of the N tokens of its grid. With
    probability ``block_prob`` it is block-wise: random rectangles are added until
    fewer than ``min_block`` tokens are missing (or 10 in a row add nothing), single
    tokens fill the rest. Otherwise it is a uniformly random subset.

    Masks depend on ``seed`` and the key of the sample only, not on how samples are
    batched. Where the model draws them, the key is ``stream``, of which each process of
    a run has its own, and the number of the sample.

    Args:
        mask_ratio: share of masked tokens.
        block_prob: probability of a block-wise mask.
        min_block: smallest area of a rectangle, in tokens.
        max_block_ratio: largest area as a share of N.
        max_aspect: rectangles have an aspect log-uniform in [1/max_aspect, max_aspect].
        seed: of all masks; None is that of the run, which ``SeekingTrainLoop`` hands
            on, else 0.

    Raises:
        ValueError: if a number is out of its range.

    Source: Sapiens2 (arXiv 2604.21681) A.1.2 for ratio, mixture and count; block
        geometry, which it does not give, after BEiT (arXiv 2106.08254).
    """

    def __init__(
        self,
        mask_ratio: float = 0.75,
        block_prob: float = 0.4,
        min_block: int = 16,
        max_block_ratio: float = 0.25,
        max_aspect: float = 1 / 0.3,
        seed: int | None = None,
    ) -> None:
        for name, value, low, high in (
            ('mask_ratio', mask_ratio, 0, 1),
            ('block_prob', block_prob, 0, 1),
            ('min_block', min_block, 1, math.inf),
            ('max_block_ratio', max_block_ratio, 0, 1),
            ('max_aspect', max_aspect, 1, math.inf),
        ):
            if not low <= value <= high:
                raise ValueError(
                    f'BlockPatchMask: {name} must be in [{low}, {high}], got {value}'
                )
        self.mask_ratio = mask_ratio
        self.block_prob = block_prob
        self.min_block = min_block
        self.max_block_ratio = max_block_ratio
        self.max_aspect = max_aspect
        self.seed = seed
        self.stream = 0

    def __call__(
        self,
        num_views: int,
        batch_size: int,
        grid: tuple[int, int],
        first_sample: int = 0,
        device: torch.device | str = 'cpu',
    ) -> TokenMask:
        """Masks for the views of a batch, each view with its own draw and coin.

        Args:
            num_views: V.
            batch_size: B.
            grid: (rows, columns) of tokens.
            first_sample: number of the first sample of the batch within the run.
            device: where the result goes.

        Returns:
            V*B masks, all samples of the first view first.

        Raises:
            ValueError: if the grid is too small to keep and to mask a token.
        """
        ids_keep = [
            self.draw((self.stream, first_sample + number), num_views, grid)
            for number in range(batch_size)
        ]
        num_tokens = grid[0] * grid[1]
        return TokenMask.from_ids_keep(np.stack(ids_keep, 1), num_tokens, device)

    def draw(
        self, key: Sequence[int], num_views: int, grid: tuple[int, int]
    ) -> np.ndarray:
        """Masks for the views of a sample, each view with its own draw and coin.

        Args:
            key: numbers that tell the sample from all others of the run.
            num_views: V.
            grid: (rows, columns) of tokens.

        Returns:
            (V, n) int, ascending indices of the visible tokens.

        Raises:
            ValueError: if the grid is too small to keep and to mask a token.
        """
        num_tokens = grid[0] * grid[1]
        num_mask = int(self.mask_ratio * num_tokens)
        if not 0 < num_mask < num_tokens:
            raise ValueError(
                f'BlockPatchMask: mask_ratio {self.mask_ratio} masks {num_mask} tokens '
                f'of a grid of {grid}; use larger views or another ratio'
            )
        rng = np.random.default_rng([self.seed or 0, *key])
        ids_keep = []
        for _ in range(num_views):
            block = rng.random() < self.block_prob
            mask = (self.draw_blocks if block else self.draw_patches)(
                rng, grid, num_mask
            )
            ids_keep.append(np.flatnonzero(~mask))
        return np.stack(ids_keep)

    @staticmethod
    def draw_patches(
        rng: np.random.Generator, grid: tuple[int, int], num_mask: int
    ) -> np.ndarray:
        """A random subset of ``num_mask`` tokens: bool of shape ``grid``."""
        mask = np.zeros(grid[0] * grid[1], dtype=bool)
        mask[rng.permutation(mask.size)[:num_mask]] = True
        return mask.reshape(grid)

    def draw_blocks(
        self, rng: np.random.Generator, grid: tuple[int, int], num_mask: int
    ) -> np.ndarray:
        """Rectangles that cover ``num_mask`` tokens: bool of shape ``grid``."""
        mask = np.zeros(grid, dtype=bool)
        missing, failures = num_mask, 0
        while missing >= self.min_block and failures < _MAX_FAILURES:
            failures += 1
            rows, columns = self._rectangle(rng, grid, missing)
            if rows > grid[0] or columns > grid[1]:
                continue
            top = rng.integers(grid[0] - rows + 1)
            left = rng.integers(grid[1] - columns + 1)
            mask[top : top + rows, left : left + columns] = True
            covered = num_mask - int(mask.sum())
            if covered < missing:
                missing, failures = covered, 0
        # Rounded sides may exceed the area by a few tokens: fix the count exactly.
        flat = mask.reshape(-1)
        candidates = np.flatnonzero(flat if missing < 0 else ~flat)
        flat[rng.permutation(candidates)[: abs(missing)]] = missing > 0
        return mask

    def _rectangle(
        self, rng: np.random.Generator, grid: tuple[int, int], missing: int
    ) -> tuple[int, int]:
        """Rows and columns of the next rectangle; the grid may be too small for it."""
        largest = min(missing, self.max_block_ratio * grid[0] * grid[1])
        area = rng.uniform(min(self.min_block, largest), largest)
        limit = math.log(self.max_aspect)
        aspect = math.exp(rng.uniform(-limit, limit))
        return max(1, round(math.sqrt(area * aspect))), max(
            1, round(math.sqrt(area / aspect))
        )
