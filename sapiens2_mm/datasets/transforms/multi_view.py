"""Random views of one image."""

import math

import cv2
import numpy as np
import torch
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F

from sapiens2_mm.registry import TRANSFORMS

from .base import Transform, check_range

Crop = tuple[int, int, int, int]  # top, left, height, width, pixels
_CROP_TRIES = 10
_DIVISORS = (8, 4, 2, 1)  # of the sides of a JPEG that is decoded in small


class RandomView:
    """One kind of view: crop, flip and, if asked for, changes of color.

    Crops are resized by antialiased bicubic interpolation, in torchvision, which did
    it three times as fast as Pillow; color and blur are OpenCV's, up to 40 times as
    fast as torchvision (tools/benchmark/multi_view.py).

    Args:
        size: (height, width) of the view.
        area: smallest and largest crop, as a share of the image's area.
        aspect_jitter: the crop's aspect is the view's times a number log-uniform in
            [1/aspect_jitter, aspect_jitter].
        flip_prob: probability of a horizontal flip.
        jitter_prob: probability of a color jitter.
        brightness, contrast, saturation: factors are uniform in [1 - x, 1 + x].
        hue: shift uniform in [-hue, hue] turns of the color circle.
        grayscale_prob: probability of losing the color.
        blur_prob: probability of a Gaussian blur.
        blur_kernel: its size, odd, in pixels.
        blur_sigma: smallest and largest standard deviation, pixels.
        solarize_prob: probability of inverting the bright values.
        solarize_threshold: values from here on are inverted.

    Raises:
        ValueError: if ``area`` is no range.
    """

    def __init__(
        self,
        size: tuple[int, int],
        area: tuple[float, float],
        aspect_jitter: float = 4 / 3,
        flip_prob: float = 0.5,
        jitter_prob: float = 0.0,
        brightness: float = 0.4,
        contrast: float = 0.4,
        saturation: float = 0.2,
        hue: float = 0.1,
        grayscale_prob: float = 0.0,
        blur_prob: float = 0.0,
        blur_kernel: int = 9,
        blur_sigma: tuple[float, float] = (0.1, 2.0),
        solarize_prob: float = 0.0,
        solarize_threshold: int = 128,
    ) -> None:
        check_range('RandomView: area', area, highest=1)
        self.size = tuple(size)
        self.area = tuple(area)
        self.aspect_jitter = aspect_jitter
        self.flip_prob = flip_prob
        self.jitter_prob = jitter_prob
        self.brightness = brightness
        self.contrast = contrast
        self.saturation = saturation
        self.hue = hue
        self.grayscale_prob = grayscale_prob
        self.blur_prob = blur_prob
        self.blur_kernel = blur_kernel
        self.blur_sigma = tuple(blur_sigma)
        self.solarize_prob = solarize_prob
        values = np.arange(256, dtype=np.uint8)
        self._solarized = np.where(values >= solarize_threshold, 255 - values, values)

    def __call__(
        self, image: np.ndarray, rng: np.random.Generator, crop: Crop | None = None
    ) -> np.ndarray:
        """(H, W, 3) uint8 BGR to a view of ``size``, of a ``crop`` drawn before."""
        if crop is None:
            crop = self.draw_crop(image.shape[:2], rng)
        top, left, height, width = crop
        # A channels-last tensor: torch's fastest path for 8-bit images.
        pixels = torch.from_numpy(image).permute(2, 0, 1)
        view = F.resized_crop(
            pixels,
            top,
            left,
            height,
            width,
            list(self.size),
            interpolation=InterpolationMode.BICUBIC,
            antialias=True,
        )
        view = np.ascontiguousarray(view.permute(1, 2, 0).numpy())
        if rng.random() < self.flip_prob:
            view = cv2.flip(view, 1)
        if rng.random() < self.jitter_prob:
            view = self._jitter(view, rng)
        if rng.random() < self.grayscale_prob:
            view = _gray(view)
        if rng.random() < self.blur_prob:
            kernel = (self.blur_kernel, self.blur_kernel)
            view = cv2.GaussianBlur(view, kernel, rng.uniform(*self.blur_sigma))
        if rng.random() < self.solarize_prob:
            view = cv2.LUT(view, self._solarized)
        return view

    def draw_crop(self, shape: tuple[int, int], rng: np.random.Generator) -> Crop:
        """Top, left, height and width of a crop of an image of (height, width).

        If 10 draws do not fit into the image, the largest crop of the view's aspect
        that the area range allows is taken, anywhere.
        """
        limit = math.log(self.aspect_jitter)
        target = self.size[1] / self.size[0]
        for _ in range(_CROP_TRIES):
            area = shape[0] * shape[1] * rng.uniform(*self.area)
            aspect = target * math.exp(rng.uniform(-limit, limit))
            height, width = (
                round(math.sqrt(area / aspect)),
                round(math.sqrt(area * aspect)),
            )
            if 0 < height <= shape[0] and 0 < width <= shape[1]:
                break
        else:
            height = min(shape[0], shape[1] / target)
            share = height * height * target / (shape[0] * shape[1])
            height *= min(1.0, math.sqrt(self.area[1] / share))
            height, width = max(1, int(height)), max(1, int(height * target))
        top = rng.integers(shape[0] - height + 1)
        left = rng.integers(shape[1] - width + 1)
        return int(top), int(left), height, width

    def _jitter(self, image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Brightness, contrast, saturation and hue in random order."""
        values = np.arange(256, dtype=np.float32)
        for step in rng.permutation(4):
            if step == 0:
                lookup = values * rng.uniform(1 - self.brightness, 1 + self.brightness)
                image = cv2.LUT(image, _to_uint8(lookup))
            elif step == 1:
                factor = rng.uniform(1 - self.contrast, 1 + self.contrast)
                mean = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY).mean()
                image = cv2.LUT(image, _to_uint8(mean + factor * (values - mean)))
            elif step == 2:
                factor = rng.uniform(1 - self.saturation, 1 + self.saturation)
                image = cv2.addWeighted(image, factor, _gray(image), 1 - factor, 0)
            elif self.hue:
                shift = round(rng.uniform(-self.hue, self.hue) * 256) % 256
                hsv = cv2.cvtColor(image, cv2.COLOR_BGR2HSV_FULL)
                hsv[..., 0] += np.uint8(shift)  # wraps around, as hue does
                image = cv2.cvtColor(hsv, cv2.COLOR_HSV2BGR_FULL)
        return image


def _suffices(crop: Crop, size: tuple[int, int], divisor: int) -> bool:
    """Whether a crop of an image reduced by ``divisor`` has the pixels of a view."""
    has_pixels = crop[2] // divisor >= size[0] and crop[3] // divisor >= size[1]
    return divisor == 1 or has_pixels


def _to_uint8(values: np.ndarray) -> np.ndarray:
    return np.rint(values).clip(0, 255).astype(np.uint8)


def _gray(image: np.ndarray) -> np.ndarray:
    """Luminance in all three channels."""
    gray = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    return cv2.cvtColor(gray, cv2.COLOR_GRAY2BGR)


@TRANSFORMS.register_module()
class MultiViewCrop(Transform):
    """Replace an image by several random views of it.

    Required key: ``img`` (H, W, 3) uint8 BGR. Optional key: ``rng``, the numpy
    generator of this sample, as our pretraining datasets give it; else numpy's global
    state decides. Set key: ``img``, the list of views.

    As the first step of a pretraining pipeline it draws its crops before the image is
    decoded (``plan``), and a JPEG is decoded at 1/2, 1/4 or 1/8 of its size if every
    crop still has the pixels of its view. The views of photographs then differ from
    those of the whole image by 0.4 to 1.6 of 255 levels on average.

    Args:
        views: one dict per kind of view, in the order of the model's inputs:
            ``num_views`` and the arguments of ``RandomView``.

    Source: Sapiens2 (arXiv 2604.21681) A.1.1 for numbers of views and crop ranges;
        strengths of the color changes of DINOv3 (arXiv 2508.10104).
    """

    def __init__(self, views: list[dict]) -> None:
        self.views: list[RandomView] = []
        for kind in views:
            kind = dict(kind)
            num_views = kind.pop('num_views')
            self.views += [RandomView(**kind)] * num_views

    def plan(self, shape: tuple[int, int], results: dict) -> int:
        """Draw the crops of an image that is not decoded yet.

        Args:
            shape: its (height, width).
            results: of the sample, with ``rng``; keeps the crops.

        Returns:
            1, 2, 4 or 8: its sides may be divided by this.
        """
        crops = [view.draw_crop(shape, results['rng']) for view in self.views]
        kinds = list(zip(crops, self.views, strict=True))
        divisor = max(
            divisor
            for divisor in _DIVISORS
            if all(_suffices(crop, view.size, divisor) for crop, view in kinds)
        )
        # Edges between pixels of the small image, so that both sizes show the same.
        crops = [tuple(side - side % divisor for side in crop) for crop in crops]
        results['crops'] = shape, crops
        return divisor

    def transform(self, results: dict) -> dict:
        image, rng = results['img'], results.get('rng')
        if rng is None:
            rng = results['rng'] = np.random.default_rng(np.random.randint(2**31))
        if 'crops' not in results:
            self.plan(image.shape[:2], results)
        shape, crops = results.pop('crops')
        divisor = round(shape[0] / image.shape[0])
        results['img'] = [
            view(image, rng, tuple(side // divisor for side in crop))
            for view, crop in zip(self.views, crops, strict=True)
        ]
        return results

    def __repr__(self) -> str:
        sizes = [view.size for view in self.views]
        return f'{type(self).__name__}(sizes={sizes})'
