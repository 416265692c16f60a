"""Another background behind a matte."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
from mmcv.transforms import BaseTransform
from mmcv.transforms.utils import cache_randomness

from sapiens2_mm.registry import TRANSFORMS

from .load_image import read_image

# 8-bit sRGB to linear light
_LINEAR = np.array(
    [
        v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
        for v in np.arange(256) / 255
    ],
    np.float32,
)


def to_srgb(linear: np.ndarray) -> np.ndarray:
    """Linear light in [0, 1] to 8-bit sRGB."""
    low = linear * 12.92
    high = 1.055 * np.maximum(linear, 1e-8) ** (1 / 2.4) - 0.055
    srgb = np.where(linear <= 0.0031308, low, high)
    return (srgb * 255).round().clip(0, 255).astype(np.uint8)


@TRANSFORMS.register_module()
class RandomMatteBackground(BaseTransform):
    """Composite the foreground over a random picture, in linear light.

    Only where the foreground is known everywhere; else the image stays.

    Required keys: those of ``LoadMatte``. Modified key: ``img``.

    Args:
        folder: pictures, in any subfolder; each is stretched over the image.
        prob: probability to replace the background.

    Raises:
        FileNotFoundError: if the folder holds no picture.

    Source: Sapiens2 official repository, matting task.
    """

    needs_annotation = True

    def __init__(self, folder: str, prob: float = 1.0) -> None:
        self.prob = prob
        suffixes = ('.jpg', '.jpeg', '.png', '.webp')
        self.paths = sorted(
            path for path in Path(folder).rglob('*') if path.suffix.lower() in suffixes
        )
        if not self.paths:
            raise FileNotFoundError(
                f'RandomMatteBackground: no picture in {folder}; expected files ending '
                f'in {suffixes}'
            )

    @cache_randomness
    def _draw(self) -> Path | None:
        if np.random.rand() >= self.prob:
            return None
        return self.paths[np.random.randint(len(self.paths))]

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        path = self._draw()
        if path is None or not results['gt_foreground_mask'].all():
            return results
        height, width = results['img'].shape[:2]
        background = cv2.resize(
            read_image(path), (width, height), interpolation=cv2.INTER_AREA
        )
        alpha = results['gt_alpha'][..., None]
        straight = results['gt_foreground'] / np.maximum(alpha, 1e-6)
        straight = (straight * 255).round().clip(0, 255).astype(np.uint8)[..., ::-1]
        light = alpha * _LINEAR[straight] + (1 - alpha) * _LINEAR[background]
        results['img'] = to_srgb(light)
        return results
