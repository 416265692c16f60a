"""Random changes of color (uint8 images, pixels only)."""

from typing import Any, NamedTuple

import cv2
import numpy as np

from sapiens2_mm.registry import TRANSFORMS

from .base import RandomTransform
from .maps import straight_bgr


class _Change(NamedTuple):
    brightness: float | None
    contrast: float | None
    contrast_first: bool
    saturation: float | None
    hue: int | None


@TRANSFORMS.register_module()
class PhotometricDistortion(RandomTransform):
    """Each change with probability 1/2; contrast before or after the color changes.

    A matte's foreground (``gt_foreground``) is changed like the image.

    Args:
        brightness_delta: largest gray level added or subtracted.
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
        super().__init__(prob)
        self.brightness_delta = brightness_delta
        self.contrast_range = tuple(contrast_range)
        self.saturation_range = tuple(saturation_range)
        self.hue_delta = hue_delta

    def parameters(self, size: tuple[int, int]) -> _Change:
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

    def apply(self, results: dict[str, Any], change: _Change) -> None:
        results['img'] = _distort(results['img'], change)
        if 'gt_foreground' in results:
            bgr = _distort(straight_bgr(results), change)
            alpha = results['gt_alpha'][..., None]
            results['gt_foreground'] = bgr[..., ::-1] * (alpha / np.float32(255))


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
            turned = (np.arange(256) + change.hue) % 180
            hsv[..., 0] = lookup_values(hsv[..., 0], turned)
        image = cv2.cvtColor(hsv, cv2.COLOR_HSV2BGR)
    if change.contrast is not None and not change.contrast_first:
        image = _linear(image, change.contrast, 0)
    return image


def _linear(values: np.ndarray, factor: float, offset: float) -> np.ndarray:
    """``factor * values + offset``, rounded and clipped, by a lookup of 256 entries."""
    return lookup_values(values, (np.arange(256) * factor + offset).round())


def lookup_values(values: np.ndarray, lookup: np.ndarray) -> np.ndarray:
    """``lookup``, 256 numbers that are clipped to 8 bits, at uint8 ``values``."""
    lookup = lookup.clip(0, 255).astype(np.uint8)
    return cv2.LUT(np.ascontiguousarray(values), lookup)


@TRANSFORMS.register_module()
class RandomSolarize(RandomTransform):
    """Turn values above a threshold into 255 minus themselves.

    Args:
        prob: probability to treat an image.
        threshold: gray level.

    Source: official repository, first public release, image augmentations.
    """

    def __init__(self, prob: float = 0.3, threshold: int = 128) -> None:
        super().__init__(prob)
        self.threshold = threshold

    def apply(self, results: dict[str, Any], parameters: Any) -> None:
        values = np.arange(256, dtype=np.uint8)
        lookup = np.where(values > self.threshold, 255 - values, values)
        results['img'] = cv2.LUT(results['img'], lookup)
