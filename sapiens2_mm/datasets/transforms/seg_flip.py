"""Horizontal flip that swaps left and right parts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from mmcv.transforms import BaseTransform
from mmcv.transforms.utils import cache_randomness

from sapiens2_mm.registry import TRANSFORMS


@TRANSFORMS.register_module()
class SegFlip(BaseTransform):
    """Mirror image and masks; classes of a pair change places.

    A class paired with the ignored label becomes ignored in a mirrored mask: its
    pixels show a partner that is no class.

    Set keys: ``flip``, ``flip_direction`` and ``flip_pairs``, which
    ``Sapiens2SegTTAModel`` needs to swap the class channels of a mirrored view.

    Args:
        prob: probability to mirror.
        flip_pairs: pairs of class ids; None takes those of the dataset.

    Raises:
        ValueError: if a mask is to be mirrored and no pairs are known.
    """

    def __init__(
        self,
        prob: float = 0.5,
        flip_pairs: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        self.prob = prob
        self.flip_pairs = flip_pairs

    @cache_randomness
    def _draw(self) -> bool:
        return np.random.rand() < self.prob

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        if self.flip_pairs is not None:
            results['flip_pairs'] = self.flip_pairs
        flip = self._draw()
        results['flip'] = flip
        results['flip_direction'] = 'horizontal' if flip else None
        if not flip:
            return results
        results['img'] = np.ascontiguousarray(results['img'][:, ::-1])
        fields = results.get('seg_fields', [])
        if fields:
            table = self._swap_table(results)
            for key in fields:
                results[key] = table[results[key][:, ::-1]]
        return results

    def _swap_table(self, results: dict[str, Any]) -> np.ndarray:
        pairs = results.get('flip_pairs')
        if pairs is None:
            raise ValueError(
                'SegFlip: a mask is to be mirrored, but the sample has no flip_pairs; '
                'use sapiens2_mm.SegDataset, or give flip_pairs ([] if no class has a '
                'side)'
            )
        ignore_index = results.get('ignore_index', 255)
        table = np.arange(256, dtype=np.uint8)
        for left, right in pairs:
            for source, target in ((left, right), (right, left)):
                if source != ignore_index:
                    table[source] = target
        return table

    def __repr__(self) -> str:
        return f'{type(self).__name__}(prob={self.prob}, flip_pairs={self.flip_pairs})'
