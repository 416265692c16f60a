"""Blur, noise, lost resolution, compression and dropout (uint8, pixels only)."""

from typing import Any

import cv2
import numpy as np

from sapiens2_mm.registry import TRANSFORMS

from .base import RandomTransform, check_choice, check_range


@TRANSFORMS.register_module()
class RandomBlur(RandomTransform):
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
        super().__init__(prob)
        check_choice('RandomBlur: kind', kind, ('box', 'median'))
        low, high = kernel_size
        if not (1 < low <= high and low % 2 and high % 2):
            raise ValueError(
                f'RandomBlur: kernel_size {kernel_size} must be two odd numbers > 1, '
                'smallest first'
            )
        self.kind = kind
        self.kernel_size = (low, high)

    def parameters(self, size: tuple[int, int]) -> int:
        low, high = self.kernel_size
        return int(np.random.choice(np.arange(low, high + 1, 2)))

    def apply(self, results: dict[str, Any], kernel: int) -> None:
        if self.kind == 'box':
            results['img'] = cv2.blur(results['img'], (kernel, kernel))
        else:
            results['img'] = cv2.medianBlur(results['img'], kernel)


@TRANSFORMS.register_module()
class RandomGaussianBlur(RandomTransform):
    """Blur an image with a Gaussian of random width.

    Args:
        prob: probability to blur an image.
        sigma: smallest and largest standard deviation, pixels.
        kernel_size: side of the kernel, odd pixels.

    Source: official repository, first public release, image augmentations.
    """

    def __init__(
        self,
        prob: float = 0.3,
        sigma: tuple[float, float] = (0.1, 2.0),
        kernel_size: int = 3,
    ) -> None:
        super().__init__(prob)
        check_range('RandomGaussianBlur: sigma', sigma)
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(
                f'RandomGaussianBlur: kernel_size must be odd, got {kernel_size}'
            )
        self.sigma = sigma
        self.kernel_size = kernel_size

    def parameters(self, size: tuple[int, int]) -> float:
        return np.random.uniform(*self.sigma)

    def apply(self, results: dict[str, Any], sigma: float) -> None:
        kernel = (self.kernel_size, self.kernel_size)
        results['img'] = cv2.GaussianBlur(results['img'], kernel, sigma)


@TRANSFORMS.register_module()
class RandomGaussianNoise(RandomTransform):
    """Add independent Gaussian noise to every value of an image, clipped to 0..255.

    Args:
        prob: probability to treat an image.
        variance: smallest and largest variance, squared gray levels.

    Source: official repository, first public release, image augmentations.
    """

    def __init__(
        self, prob: float = 0.3, variance: tuple[float, float] = (5.0, 20.0)
    ) -> None:
        super().__init__(prob)
        check_range('RandomGaussianNoise: variance', variance, zero=True)
        self.variance = variance

    def parameters(self, size: tuple[int, int]) -> tuple[float, int]:
        return np.random.uniform(*self.variance), np.random.randint(2**31)

    def apply(self, results: dict[str, Any], parameters: tuple[float, int]) -> None:
        variance, seed = parameters
        cv2.setRNGSeed(seed)
        # Pixels are whole numbers: rounding the noise is rounding the sum.
        image = results['img']
        noise = np.empty((len(image), image[0].size), np.int16)
        cv2.randn(noise, 0, variance**0.5)
        results['img'] = cv2.add(image, noise.reshape(image.shape), dtype=cv2.CV_8U)


_INTERPOLATIONS = (
    cv2.INTER_NEAREST,
    cv2.INTER_LINEAR,
    cv2.INTER_CUBIC,
    cv2.INTER_AREA,
    cv2.INTER_LANCZOS4,
)


@TRANSFORMS.register_module()
class RandomDownUpSample(RandomTransform):
    """Shrink an image and enlarge it back to its size.

    The interpolation of either direction is drawn from nearest, linear, cubic, area
    and Lanczos. The size of the image, and so its annotations, stay as they are.

    Args:
        prob: probability to treat an image.
        factor: smallest and largest factor of both sides, in (0, 1].

    Source: official repository, first public release, image augmentations.
    """

    def __init__(
        self, prob: float = 0.2, factor: tuple[float, float] = (0.1, 0.7)
    ) -> None:
        super().__init__(prob)
        check_range('RandomDownUpSample: factor', factor, highest=1)
        self.factor = factor

    def parameters(self, size: tuple[int, int]) -> tuple[float, int, int]:
        down, up = np.random.choice(_INTERPOLATIONS, 2)
        return np.random.uniform(*self.factor), int(down), int(up)

    def apply(
        self, results: dict[str, Any], parameters: tuple[float, int, int]
    ) -> None:
        factor, down, up = parameters
        height, width = results['img'].shape[:2]
        small = max(1, round(width * factor)), max(1, round(height * factor))
        image = cv2.resize(results['img'], small, interpolation=down)
        results['img'] = cv2.resize(image, (width, height), interpolation=up)


@TRANSFORMS.register_module()
class RandomJpeg(RandomTransform):
    """Compress and decompress an image.

    Args:
        prob: probability to treat an image.
        quality: smallest and largest JPEG quality.
    """

    def __init__(self, prob: float = 0.5, quality: tuple[int, int] = (30, 60)) -> None:
        super().__init__(prob)
        self.quality = tuple(quality)

    def parameters(self, size: tuple[int, int]) -> int:
        return np.random.randint(self.quality[0], self.quality[1] + 1)

    def apply(self, results: dict[str, Any], quality: int) -> None:
        options = [cv2.IMWRITE_JPEG_QUALITY, quality]
        data = cv2.imencode('.jpg', results['img'], options)[1]
        results['img'] = cv2.imdecode(data, cv2.IMREAD_COLOR)


@TRANSFORMS.register_module()
class CoarseDropout(RandomTransform):
    """Set one random rectangle to 0. Keypoint visibility is left as it is.

    Args:
        prob: probability to drop a rectangle.
        extent: smallest and largest side, as a share of the image's side; height
            and width are drawn independently.
    """

    def __init__(
        self, prob: float = 1.0, extent: tuple[float, float] = (0.2, 0.4)
    ) -> None:
        super().__init__(prob)
        check_range('CoarseDropout: extent', extent, highest=1)
        self.extent = extent

    def parameters(self, size: tuple[int, int]) -> tuple[int, int, int, int]:
        sides = np.rint(np.random.uniform(*self.extent, size=2) * size).astype(int)
        top = np.random.randint(size[0] - sides[0] + 1)
        left = np.random.randint(size[1] - sides[1] + 1)
        return top, left, int(sides[0]), int(sides[1])

    def apply(
        self, results: dict[str, Any], parameters: tuple[int, int, int, int]
    ) -> None:
        top, left, height, width = parameters
        results['img'] = results['img'].copy()
        results['img'][top : top + height, left : left + width] = 0
