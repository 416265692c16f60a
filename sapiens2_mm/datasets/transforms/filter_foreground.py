"""Drop samples with hardly any person in them."""

from typing import Any

import numpy as np
from mmcv.transforms import BaseTransform

from sapiens2_mm.registry import TRANSFORMS


@TRANSFORMS.register_module()
class FilterForeground(BaseTransform):
    """Drop a training sample whose foreground is too small after augmentation.

    The dataset then takes another random sample. Foreground is what is neither 0 nor
    ignored in ``gt_seg_map``.

    Args:
        min_ratio: smallest share of foreground pixels, in [0, 1].

    Source: official repository, first public release, segmentation data sets.
    """

    def __init__(self, min_ratio: float = 0.01) -> None:
        self.min_ratio = min_ratio

    def transform(self, results: dict[str, Any]) -> dict[str, Any] | None:
        labels = results['gt_seg_map']
        foreground = (labels != 0) & (labels != results.get('ignore_index', 255))
        return results if np.mean(foreground) >= self.min_ratio else None

    def __repr__(self) -> str:
        return f'{type(self).__name__}(min_ratio={self.min_ratio})'
