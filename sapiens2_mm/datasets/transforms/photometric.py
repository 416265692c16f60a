"""Random changes of color (uint8 images, pixels only)."""

from typing import NamedTuple

import cv2
import numpy as np
from mmcv.transforms import BaseTransform
from mmcv.transforms.utils import cache_randomness

from sapiens2_mm.registry import TRANSFORMS


class _Change(NamedTuple):
    brightness: float | None
    contrast: float | None
    contrast_first: bool
    saturation: float | None
    hue: int | None


@TRANSFORMS.register_module()
class PhotometricDistortion(BaseTransform):
    """Each change with probability 1/2; contrast before or after the colour changes.

    A matte's foreground (``gt_foreground``) is changed like the image.

    Args:
        brightness_delta: largest grey level added or subtracted.
        contrast_range: smallest and largest factor of all values.
        saturation_range: smallest and largest factor of the HSV saturation.
        hue_delta: largest step of the OpenCV hue, which has 180 in a turn.
        prob: probability to treat an image at all.

    Source: official repository, first public release, image augmentations.
    """

    def __init__(
        self,
        brightness_delta: float = 32,
        contrast_range: tuple[float, float] = (0.5, 1.5),
        saturation_range: tuple[float, float] = (0.5, 1.5),
        hue_delta: int = 18,
        prob: float = 1.0,
    ) -> None:
        self.brightness_delta = brightness_delta
        self.contrast_range = tuple(contrast_range)
        self.saturation_range = tuple(saturation_range)
        self.hue_delta = hue_delta
        self.prob = prob

    @cache_randomness
    def _draw(self) -> _Change | None:
        if np.random.rand() >= self.prob:
            return None

        def maybe(value: float) -> float | None:
            return value if np.random.rand() < 0.5 else None

        delta = self.brightness_delta
        return _Change(
            brightness=maybe(np.random.uniform(-delta, delta)),
            contrast=maybe(np.random.uniform(*self.contrast_range)),
            contrast_first=bool(np.random.rand() < 0.5),
            saturation=maybe(np.random.uniform(*self.saturation_range)),
            hue=maybe(np.random.randint(-self.hue_delta, self.hue_delta + 1)),
        )

    def transform(self, results: dict) -> dict:
        change = self._draw()
        if change is not None:
            results['img'] = _distort(results['img'], change)
            if 'gt_foreground' in results:
                results['gt_foreground'] = _distort_foreground(
                    results['gt_foreground'], results['gt_alpha'], change
                )
        return results


def _distort_foreground(
    foreground: np.ndarray, alpha: np.ndarray, change: _Change
) -> np.ndarray:
    """Change the straight colours of an RGB float foreground multiplied by alpha."""
    alpha = alpha[..., None]
    straight = foreground / np.maximum(alpha, 1e-6)
    straight = (straight * 255).round().clip(0, 255).astype(np.uint8)
    bgr = _distort(np.ascontiguousarray(straight[..., ::-1]), change)
    return bgr[..., ::-1] * (alpha / np.float32(255))


def _distort(image: np.ndarray, change: _Change) -> np.ndarray:
    if change.brightness is not None:
        image = _linear(image, 1, change.brightness)
    if change.contrast is not None and change.contrast_first:
        image = _linear(image, change.contrast, 0)
    if change.saturation is not None or change.hue is not None:
        hsv = cv2.cvtColor(image, cv2.COLOR_BGR2HSV)
        if change.saturation is not None:
            hsv[..., 1] = _linear(hsv[..., 1], change.saturation, 0)
        if change.hue is not None:
            hsv[..., 0] = (hsv[..., 0].astype(np.int16) + change.hue) % 180
        image = cv2.cvtColor(hsv, cv2.COLOR_HSV2BGR)
    if change.contrast is not None and not change.contrast_first:
        image = _linear(image, change.contrast, 0)
    return image


def _linear(values: np.ndarray, factor: float, offset: float) -> np.ndarray:
    """``factor * values + offset``, rounded and clipped, by a table of 256 entries."""
    table = np.arange(256) * factor + offset
    return cv2.LUT(
        np.ascontiguousarray(values), table.round().clip(0, 255).astype(np.uint8)
    )


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
