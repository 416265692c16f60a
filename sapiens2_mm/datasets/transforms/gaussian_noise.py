"""Gaussian noise (uint8 images, pixels only)."""

import numpy as np
from mmcv.transforms import BaseTransform
from mmcv.transforms.utils import cache_randomness

from sapiens2_mm.registry import TRANSFORMS


@TRANSFORMS.register_module()
class RandomGaussianNoise(BaseTransform):
    """Add independent Gaussian noise to every value of an image, clipped to 0..255.

    Args:
        prob: probability to treat an image.
        variance: smallest and largest variance, squared grey levels.

    Raises:
        ValueError: if ``variance`` is no range.

    Source: official repository, first public release, image augmentations.
    """

    def __init__(
        self, prob: float = 0.3, variance: tuple[float, float] = (5.0, 20.0)
    ) -> None:
        if not 0 <= variance[0] <= variance[1]:
            raise ValueError(
                f'RandomGaussianNoise: variance {variance} must be two numbers >= 0, '
                'smallest first'
            )
        self.prob = prob
        self.variance = variance

    @cache_randomness
    def _draw(self) -> tuple[float, int] | None:
        if np.random.rand() >= self.prob:
            return None
        return np.random.uniform(*self.variance), np.random.randint(2**31)

    def transform(self, results: dict) -> dict:
        drawn = self._draw()
        if drawn is not None:
            variance, seed = drawn
            image = results['img']
            noise = np.random.default_rng(seed).standard_normal(
                image.shape, dtype=np.float32
            )
            noise *= variance**0.5
            noise += image
            results['img'] = np.rint(noise).clip(0, 255).astype(np.uint8)
        return results
