"""Gaussian blur (uint8 images, pixels only)."""

import cv2
import numpy as np
from mmcv.transforms import BaseTransform
from mmcv.transforms.utils import cache_randomness

from sapiens2_mm.registry import TRANSFORMS


@TRANSFORMS.register_module()
class RandomGaussianBlur(BaseTransform):
    """Blur an image with a Gaussian of random width.

    Args:
        prob: probability to blur an image.
        sigma: smallest and largest standard deviation, pixels.
        kernel_size: side of the kernel, odd pixels.

    Raises:
        ValueError: if ``kernel_size`` is even or ``sigma`` is no range.

    Source: official repository, first public release, image augmentations.
    """

    def __init__(
        self,
        prob: float = 0.3,
        sigma: tuple[float, float] = (0.1, 2.0),
        kernel_size: int = 3,
    ) -> None:
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(
                f'RandomGaussianBlur: kernel_size must be odd, got {kernel_size}'
            )
        if not 0 < sigma[0] <= sigma[1]:
            raise ValueError(
                f'RandomGaussianBlur: sigma {sigma} must be two positive numbers, '
                'smallest first'
            )
        self.prob = prob
        self.sigma = sigma
        self.kernel_size = kernel_size

    @cache_randomness
    def _draw_sigma(self) -> float | None:
        if np.random.rand() >= self.prob:
            return None
        return np.random.uniform(*self.sigma)

    def transform(self, results: dict) -> dict:
        sigma = self._draw_sigma()
        if sigma is not None:
            results['img'] = cv2.GaussianBlur(
                results['img'], (self.kernel_size, self.kernel_size), sigma
            )
        return results
