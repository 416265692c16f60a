"""Blur, noise, compression and dropout (uint8 images, pixels only)."""

from typing import Any

import cv2
import numpy as np
from mmcv.transforms import BaseTransform
from mmcv.transforms.utils import cache_randomness

from sapiens2_mm.registry import TRANSFORMS


@TRANSFORMS.register_module()
class RandomBlur(BaseTransform):
    """Box or median blur with a random odd kernel.

    Args:
        kind: ``'box'`` or ``'median'``.
        prob: probability to blur an image.
        kernel_size: smallest and largest kernel, odd pixels.
    """

    def __init__(
        self,
        kind: str = 'box',
        prob: float = 0.1,
        kernel_size: tuple[int, int] = (3, 7),
    ) -> None:
        if kind not in ('box', 'median'):
            raise ValueError(f'RandomBlur: kind {kind!r} must be "box" or "median"')
        low, high = kernel_size
        if not (1 < low <= high and low % 2 and high % 2):
            raise ValueError(
                f'RandomBlur: kernel_size {kernel_size} must be two odd numbers > 1, '
                'smallest first'
            )
        self.kind = kind
        self.prob = prob
        self.kernel_size = (low, high)

    @cache_randomness
    def _draw_kernel(self) -> int | None:
        if np.random.rand() >= self.prob:
            return None
        low, high = self.kernel_size
        return int(np.random.choice(np.arange(low, high + 1, 2)))

    def transform(self, results: dict) -> dict:
        kernel = self._draw_kernel()
        if kernel is not None:
            if self.kind == 'box':
                results['img'] = cv2.blur(results['img'], (kernel, kernel))
            else:
                results['img'] = cv2.medianBlur(results['img'], kernel)
        return results


@TRANSFORMS.register_module()
class CoarseDropout(BaseTransform):
    """Set one random rectangle to 0. Keypoint visibility is left as it is.

    Args:
        prob: probability to drop a rectangle.
        extent: smallest and largest side, as a share of the image's side; height
            and width are drawn independently.
    """

    def __init__(
        self, prob: float = 1.0, extent: tuple[float, float] = (0.2, 0.4)
    ) -> None:
        if not 0 < extent[0] <= extent[1] <= 1:
            raise ValueError(
                f'CoarseDropout: extent {extent} must be two shares in (0, 1], '
                'smallest first'
            )
        self.prob = prob
        self.extent = extent

    @cache_randomness
    def _draw_box(self, height: int, width: int) -> tuple[int, int, int, int] | None:
        if np.random.rand() >= self.prob:
            return None
        box_h, box_w = np.rint(
            np.random.uniform(*self.extent, size=2) * (height, width)
        ).astype(int)
        top = np.random.randint(height - box_h + 1)
        left = np.random.randint(width - box_w + 1)
        return top, left, int(box_h), int(box_w)

    def transform(self, results: dict) -> dict:
        box = self._draw_box(*results['img'].shape[:2])
        if box is not None:
            top, left, height, width = box
            results['img'] = results['img'].copy()
            results['img'][top : top + height, left : left + width] = 0
        return results


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


_INTERPOLATIONS = (
    cv2.INTER_NEAREST,
    cv2.INTER_LINEAR,
    cv2.INTER_CUBIC,
    cv2.INTER_AREA,
    cv2.INTER_LANCZOS4,
)


@TRANSFORMS.register_module()
class RandomDownUpSample(BaseTransform):
    """Shrink an image and enlarge it back to its size.

    The interpolation of either direction is drawn from nearest, linear, cubic, area
    and Lanczos. The size of the image, and so its annotations, stay as they are.

    Args:
        prob: probability to treat an image.
        factor: smallest and largest factor of both sides, in (0, 1].

    Raises:
        ValueError: if ``factor`` is not such a range.

    Source: official repository, first public release, image augmentations.
    """

    def __init__(
        self, prob: float = 0.2, factor: tuple[float, float] = (0.1, 0.7)
    ) -> None:
        if not 0 < factor[0] <= factor[1] <= 1:
            raise ValueError(
                f'RandomDownUpSample: factor {factor} must be two numbers in (0, 1], '
                'smallest first'
            )
        self.prob = prob
        self.factor = factor

    @cache_randomness
    def _draw(self) -> tuple[float, int, int] | None:
        if np.random.rand() >= self.prob:
            return None
        down, up = np.random.choice(_INTERPOLATIONS, 2)
        return np.random.uniform(*self.factor), int(down), int(up)

    def transform(self, results: dict) -> dict:
        drawn = self._draw()
        if drawn is not None:
            factor, down, up = drawn
            height, width = results['img'].shape[:2]
            small = max(1, round(width * factor)), max(1, round(height * factor))
            image = cv2.resize(results['img'], small, interpolation=down)
            results['img'] = cv2.resize(image, (width, height), interpolation=up)
        return results


@TRANSFORMS.register_module()
class RandomJpeg(BaseTransform):
    """Compress and decompress an image (uint8, pixels only).

    Args:
        prob: probability to treat an image.
        quality: smallest and largest JPEG quality.
    """

    def __init__(self, prob: float = 0.5, quality: tuple[int, int] = (30, 60)) -> None:
        self.prob = prob
        self.quality = tuple(quality)

    @cache_randomness
    def _draw(self) -> int | None:
        if np.random.rand() >= self.prob:
            return None
        return np.random.randint(self.quality[0], self.quality[1] + 1)

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        quality = self._draw()
        if quality is not None:
            data = cv2.imencode(
                '.jpg', results['img'], [cv2.IMWRITE_JPEG_QUALITY, quality]
            )[1]
            results['img'] = cv2.imdecode(data, cv2.IMREAD_COLOR)
        return results
