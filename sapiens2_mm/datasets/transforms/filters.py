"""Samples that are no use for training."""

from typing import Any

import cv2
import numpy as np

from sapiens2_mm.registry import TRANSFORMS

from .base import Transform
from .maps import as_mask


@TRANSFORMS.register_module()
class FilterForeground(Transform):
    """Drop a training sample whose foreground is too small after augmentation.

    The dataset then takes another random sample. Foreground is what is neither 0 nor
    ignored in ``gt_seg_map``.

    Args:
        min_ratio: smallest share of foreground pixels, in [0, 1].

    Source: official repository, first public release, segmentation data sets.
    """

    at_inference = 'skip'

    def __init__(self, min_ratio: float = 0.01) -> None:
        self.min_ratio = min_ratio

    def transform(self, results: dict[str, Any]) -> dict[str, Any] | None:
        labels = results['gt_seg_map']
        foreground = (labels != 0) & (labels != results.get('ignore_index', 255))
        return results if np.mean(foreground) >= self.min_ratio else None

    def __repr__(self) -> str:
        return f'{type(self).__name__}(min_ratio={self.min_ratio})'


@TRANSFORMS.register_module()
class FilterByMask(Transform):
    """Drop a training sample with too few or too many valid pixels.

    Args:
        min_pixels: fewest valid pixels.
        max_share: largest share of valid pixels.
    """

    at_inference = 'skip'

    def __init__(self, min_pixels: int = 16, max_share: float = 0.96) -> None:
        self.min_pixels = min_pixels
        self.max_share = max_share

    def transform(self, results: dict[str, Any]) -> dict[str, Any] | None:
        mask = results['gt_mask']
        count = np.count_nonzero(mask)
        if count < self.min_pixels or count > self.max_share * mask.size:
            return None
        return results


@TRANSFORMS.register_module()
class FilterFlatAlbedo(Transform):
    """Drop a training sample whose albedo is of one color.

    Args:
        min_std: a sample stays if any channel's deviation over the valid pixels
            reaches this.
    """

    at_inference = 'skip'

    def __init__(self, min_std: float = 0.02) -> None:
        self.min_std = min_std

    def transform(self, results: dict[str, Any]) -> dict[str, Any] | None:
        mask = as_mask(results['gt_mask'])
        deviations = cv2.meanStdDev(results['gt_albedo'], mask=mask)[1]  # 0 of none
        return results if (deviations >= self.min_std).any() else None
