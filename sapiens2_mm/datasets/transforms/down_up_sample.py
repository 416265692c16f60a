"""Loss of resolution (uint8 images, pixels only)."""

import cv2
import numpy as np
from mmcv.transforms import BaseTransform
from mmcv.transforms.utils import cache_randomness

from sapiens2_mm.registry import TRANSFORMS

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
