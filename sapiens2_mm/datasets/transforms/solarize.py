"""Inversion of bright values (uint8 images, pixels only)."""

import numpy as np
from mmcv.transforms import BaseTransform
from mmcv.transforms.utils import cache_randomness

from sapiens2_mm.registry import TRANSFORMS


@TRANSFORMS.register_module()
class RandomSolarize(BaseTransform):
    """Turn values above a threshold into 255 minus themselves.

    Args:
        prob: probability to treat an image.
        threshold: grey level.

    Source: official repository, first public release, image augmentations.
    """

    def __init__(self, prob: float = 0.3, threshold: int = 128) -> None:
        self.prob = prob
        self.threshold = threshold

    @cache_randomness
    def _draw(self) -> bool:
        return bool(np.random.rand() < self.prob)

    def transform(self, results: dict) -> dict:
        if self._draw():
            image = results['img']
            results['img'] = np.where(image > self.threshold, 255 - image, image)
        return results
