"""Random scale, crop and flip of an image together with its maps, masks and camera."""

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np

from sapiens2_mm.registry import TRANSFORMS

from ..metainfo.mirror_pairs import mirrored_ids
from .base import RandomTransform, check_range
from .maps import (
    MAPS,
    flipped_camera,
    mirrored,
    present_maps,
    resize_sample,
    shifted_camera,
    update_cameras,
)


@TRANSFORMS.register_module()
class DenseRandomScale(RandomTransform):
    """Resize by one random factor; the image bilinearly, maps as ``MAPS`` says.

    Modified keys: ``img``, ``img_shape``, all maps, ``intrinsics``,
    ``map_intrinsics``.

    Args:
        prob: probability to resize.
        scale_range: smallest and largest factor.
    """

    def __init__(
        self, prob: float = 0.3, scale_range: tuple[float, float] = (0.5, 2.0)
    ) -> None:
        super().__init__(prob)
        check_range('DenseRandomScale: scale_range', scale_range)
        self.scale_range = tuple(scale_range)

    def parameters(self, size: tuple[int, int]) -> float:
        return np.random.uniform(*self.scale_range)

    def apply(self, results: dict[str, Any], scale: float) -> None:
        height, width = results['img'].shape[:2]
        size = (max(1, round(height * scale)), max(1, round(width * scale)))
        resize_sample(results, size)


@TRANSFORMS.register_module()
class DenseRandomCrop(RandomTransform):
    """Cut out a random rectangle.

    Modified keys: ``img``, ``img_shape``, all maps, ``intrinsics``,
    ``map_intrinsics``.

    Args:
        prob: probability to crop.
        aspect_range: smallest and largest width / height.
        area_range: smallest and largest share of the image's area.
        num_tries: how often to draw a rectangle that fits; then the image stays.
        size: (height, width) of every rectangle, at most those of the image; None
            draws it.
    """

    at_inference = 'refuse'

    def __init__(
        self,
        prob: float = 0.3,
        aspect_range: tuple[float, float] = (0.5, 2.0),
        area_range: tuple[float, float] = (0.4, 1.0),
        num_tries: int = 8,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(prob)
        self.size = size
        check_range('DenseRandomCrop: aspect_range', aspect_range)
        check_range('DenseRandomCrop: area_range', area_range)
        self.aspect_range = tuple(aspect_range)
        self.area_range = tuple(area_range)
        self.num_tries = num_tries

    def parameters(self, size: tuple[int, int]) -> tuple[int, int, int, int] | None:
        height, width = size
        for _ in range(self.num_tries):
            crop_height, crop_width = self._draw_size(height, width)
            if 0 < crop_width <= width and 0 < crop_height <= height:
                left = np.random.randint(width - crop_width + 1)
                top = np.random.randint(height - crop_height + 1)
                return left, top, crop_width, crop_height
        return None

    def _draw_size(self, height: int, width: int) -> tuple[int, int]:
        if self.size is not None:
            return min(height, self.size[0]), min(width, self.size[1])
        aspect = np.random.uniform(*self.aspect_range)
        area = np.random.uniform(*self.area_range) * height * width
        return round((area / aspect) ** 0.5), round((area * aspect) ** 0.5)

    def apply(self, results: dict[str, Any], box: tuple[int, int, int, int]) -> None:
        left, top, width, height = box
        for name in ['img', *present_maps(results)]:
            results[name] = results[name][top : top + height, left : left + width]
        results['img_shape'] = (height, width)
        update_cameras(results, shifted_camera, left, top)


@TRANSFORMS.register_module()
class DenseRandomFlip(RandomTransform):
    """Mirror left and right.

    The x component of normals and points changes its sign, the principal point moves
    to ``W - 1 - cx``, and the first row of the extrinsics is negated.

    Modified keys: ``img``, all maps, ``intrinsics``, ``map_intrinsics``,
    ``extrinsics``. Set key: ``flip``.

    Args:
        prob: probability to mirror.
    """

    # predictions are not brought back to the image from it
    at_inference = 'refuse'

    def __init__(self, prob: float = 0.3) -> None:
        super().__init__(prob)

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        results['flip'] = False
        return super().transform(results)

    def apply(self, results: dict[str, Any], parameters: Any) -> None:
        results['flip'] = True
        for name in ['img', *present_maps(results)]:
            results[name] = mirrored(results[name])
            if name in MAPS and MAPS[name].vector:
                results[name][..., 0] *= -1
        update_cameras(results, flipped_camera, results['img'].shape[1])
        if 'extrinsics' in results:
            results['extrinsics'] = results['extrinsics'].copy()
            results['extrinsics'][0] *= -1


@TRANSFORMS.register_module()
class SegFlip(RandomTransform):
    """Mirror image and masks; classes of a pair change places.

    A class paired with the ignored label becomes ignored in a mirrored mask: its
    pixels show a partner that is no class.

    Set keys: ``flip``, ``flip_direction`` and ``flip_pairs``, which
    ``Sapiens2SegTTAModel`` needs to swap the class channels of a mirrored view.

    Args:
        prob: probability to mirror.
        flip_pairs: pairs of class ids; None takes those of the dataset.

    Raises:
        ValueError: if a mask is to be mirrored and no pairs are known, or one is not of
            two classes of its own; names the pair.
    """

    def __init__(
        self,
        prob: float = 0.5,
        flip_pairs: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        super().__init__(prob)
        if flip_pairs is not None:
            mirrored_ids(flip_pairs, 256)
        self.flip_pairs = flip_pairs

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        if self.flip_pairs is not None:
            results['flip_pairs'] = self.flip_pairs
        results.update(flip=False, flip_direction=None)
        return super().transform(results)

    def apply(self, results: dict[str, Any], parameters: Any) -> None:
        results.update(flip=True, flip_direction='horizontal')
        results['img'] = mirrored(results['img'])
        fields = results.get('seg_fields', [])
        if fields:
            lookup = self._swap_lookup(results)
            for key in fields:
                results[key] = cv2.LUT(mirrored(results[key]), lookup)

    def _swap_lookup(self, results: dict[str, Any]) -> np.ndarray:
        pairs = results.get('flip_pairs')
        if pairs is None:
            raise ValueError(
                'SegFlip: a mask is to be mirrored, but the sample has no flip_pairs; '
                'use sapiens2_mm.SegDataset, or give flip_pairs ([] if no class has a '
                'side)'
            )
        num_classes = results.get('num_classes', 256)
        lookup = np.arange(256, dtype=np.uint8)
        lookup[:num_classes] = mirrored_ids(
            pairs, num_classes, results.get('ignore_index', 255)
        )
        return lookup

    def __repr__(self) -> str:
        return f'{type(self).__name__}(prob={self.prob}, flip_pairs={self.flip_pairs})'
