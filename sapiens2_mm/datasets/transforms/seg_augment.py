"""mmseg's crops and changes of color, equal in every pixel and much faster."""

import cv2
import numpy as np
from mmcv.transforms.utils import cache_randomness
from mmseg.datasets.transforms import PhotoMetricDistortion, RandomCrop

from sapiens2_mm.registry import TRANSFORMS

from .base import Transform
from .photometric import lookup_values

_TRIES = 10


@TRANSFORMS.register_module()
class SegRandomCrop(Transform, RandomCrop):
    """mmseg's ``RandomCrop``; classes of a crop are counted by a histogram.

    The arguments are those of mmseg's, and so are the draws. ``gt_seg_map`` is uint8.
    """

    at_inference = 'refuse'

    @cache_randomness
    def crop_bbox(self, results: dict) -> tuple[int, int, int, int]:
        """(top, bottom, left, right) in which no class has ``cat_max_ratio``."""
        box = self._draw_box(results['img'])
        if self.cat_max_ratio < 1:
            for _ in range(_TRIES):
                if self._is_mixed(self.crop(results['gt_seg_map'], box)):
                    break
                box = self._draw_box(results['img'])
        return box

    def _draw_box(self, image: np.ndarray) -> tuple[int, int, int, int]:
        height, width = self.crop_size
        top = np.random.randint(0, max(image.shape[0] - height, 0) + 1)
        left = np.random.randint(0, max(image.shape[1] - width, 0) + 1)
        return top, top + height, left, left + width

    def _is_mixed(self, labels: np.ndarray) -> bool:
        counts = cv2.calcHist([labels], [0], None, [256], [0, 256]).ravel().astype(int)
        counts[self.ignore_index] = 0
        several = np.count_nonzero(counts) > 1
        return several and counts.max() / counts.sum() < self.cat_max_ratio


@TRANSFORMS.register_module()
class SegPhotometricDistortion(Transform, PhotoMetricDistortion):
    """mmseg's ``PhotoMetricDistortion`` by lookups of 256 values; uint8 images."""

    at_inference = 'refuse'

    def convert(self, img: np.ndarray, alpha: float = 1, beta: float = 0) -> np.ndarray:
        """``alpha * img + beta`` in 8 bits."""
        return lookup_values(img, np.arange(256, dtype=np.float32) * alpha + beta)

    def hue(self, img: np.ndarray) -> np.ndarray:
        """The hue turned by a random angle, with the draws of mmseg's."""
        if not np.random.randint(2):
            return img
        turned = np.arange(256) + np.random.randint(-self.hue_delta, self.hue_delta)
        hsv = cv2.cvtColor(img, cv2.COLOR_BGR2HSV)
        hsv[..., 0] = lookup_values(hsv[..., 0], turned % 180)
        return cv2.cvtColor(hsv, cv2.COLOR_HSV2BGR)
