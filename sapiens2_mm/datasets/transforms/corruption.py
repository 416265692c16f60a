"""Blur and dropout of image regions (uint8 images, pixels only)."""

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
