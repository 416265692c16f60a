"""Another background behind a person."""

from typing import Any

import cv2
import numpy as np

from sapiens2_mm.registry import TRANSFORMS

from ..io.folder import list_images
from ..io.image import read_image
from .base import RandomTransform
from .maps import as_mask, straight_bgr


@TRANSFORMS.register_module()
class RandomBackground(RandomTransform):
    """Paste a random photo behind the person.

    The photo is scaled to cover the image and cut at its center. Then the person takes
    the photo's color statistics (Lab mean and standard deviation). The person is the
    mask of a dense task, or what is not label 0, ignored pixels too. Samples marked
    ``in_the_wild`` keep their background, as do samples without a person.

    Args:
        background_dir: folder of photos without people, subfolders included. None
            draws smooth fields of random colors, for lack of photos.
        prob: probability to replace a background.
        transfer_color: whether the person takes the photo's colors.

    Raises:
        FileNotFoundError: on first use, if ``background_dir`` holds no image.

    Source: official repository, first public release, segmentation transforms; color
        transfer after Reinhard et al. 2001.
    """

    def __init__(
        self,
        background_dir: str | None = None,
        prob: float = 0.8,
        transfer_color: bool = True,
    ) -> None:
        super().__init__(prob)
        self.background_dir = background_dir
        self.transfer_color = transfer_color
        self._paths: list[str] | None = None

    @property
    def paths(self) -> list[str]:
        """All photos of the folder, sorted; none without a folder."""
        if self._paths is None:
            folder = self.background_dir
            self._paths = [] if folder is None else list_images(folder)
        return self._paths

    def parameters(self, size: tuple[int, int]) -> np.ndarray:
        """A background of any size."""
        if self.background_dir is None:
            return np.random.randint(0, 256, (4, 3, 3), np.uint8)
        return read_image(self.paths[np.random.randint(len(self.paths))])

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        if results.get('in_the_wild', False):
            return results
        return super().transform(results)

    def apply(self, results: dict[str, Any], photo: np.ndarray) -> None:
        person = results['gt_mask' if 'gt_mask' in results else 'gt_seg_map'] != 0
        if not person.any():
            return
        image = results['img']
        background = _cover(photo, image.shape[:2])
        if self.transfer_color:
            image = transfer_color(image, person, background)
        results['img'] = cv2.copyTo(image, as_mask(person), background)

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(background_dir={self.background_dir!r}, '
            f'prob={self.prob}, transfer_color={self.transfer_color})'
        )


def _cover(photo: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The center of ``photo``, as large as its aspect allows, at (height, width)."""
    height, width = size
    old_height, old_width = photo.shape[:2]
    scale = max(height / old_height, width / old_width)
    cut_h = min(old_height, max(1, round(height / scale)))
    cut_w = min(old_width, max(1, round(width / scale)))
    top, left = (old_height - cut_h) // 2, (old_width - cut_w) // 2
    center = photo[top : top + cut_h, left : left + cut_w]
    interpolation = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    return cv2.resize(center, (width, height), interpolation=interpolation)


def transfer_color(
    image: np.ndarray, mask: np.ndarray, reference: np.ndarray
) -> np.ndarray:
    """Give the masked pixels the Lab mean and standard deviation of a reference.

    Args:
        image: (H, W, 3) uint8 BGR.
        mask: (H, W) bool, not empty.
        reference: (H', W', 3) uint8 BGR.

    Returns:
        (H, W, 3) uint8 BGR; pixels outside the mask are as before.
    """
    new_mean, new_spread = cv2.meanStdDev(_to_lab(reference))
    left, top, width, height = cv2.boundingRect(as_mask(mask))
    part = slice(top, top + height), slice(left, left + width)
    lab, inside = _to_lab(image[part]), as_mask(mask[part])
    mean, spread = cv2.meanStdDev(lab, mask=inside)
    # A channel without variation has nothing to stretch.
    gain = np.where(spread > 1e-3, new_spread / np.maximum(spread, 1e-3), 1.0)
    lab = cv2.transform(lab, np.hstack((np.diagflat(gain), new_mean - gain * mean)))
    bgr = cv2.cvtColor(lab, cv2.COLOR_LAB2BGR)
    bgr = cv2.multiply(bgr, (255.0,) * 4, dtype=cv2.CV_8U)  # rounds and clips
    out = image.copy()
    out[part] = cv2.copyTo(bgr, inside, out[part].copy())
    return out


def _to_lab(image: np.ndarray) -> np.ndarray:
    image = image.astype(np.float32)
    image *= 1 / 255
    return cv2.cvtColor(image, cv2.COLOR_BGR2LAB)


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
class RandomMatteBackground(RandomTransform):
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

    at_inference = 'skip'

    def __init__(self, folder: str, prob: float = 1.0) -> None:
        super().__init__(prob)
        self.paths = list_images(folder)

    def parameters(self, size: tuple[int, int]) -> str:
        return self.paths[np.random.randint(len(self.paths))]

    def apply(self, results: dict[str, Any], path: str) -> None:
        if not results['gt_foreground_mask'].all():
            return
        height, width = results['img'].shape[:2]
        background = cv2.resize(
            read_image(path), (width, height), interpolation=cv2.INTER_AREA
        )
        alpha = results['gt_alpha'][..., None]
        foreground = _LINEAR[straight_bgr(results)]
        light = alpha * foreground + (1 - alpha) * _LINEAR[background]
        results['img'] = to_srgb(light)
