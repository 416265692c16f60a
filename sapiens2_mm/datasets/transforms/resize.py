"""Bring an image to the size of the network."""

from math import floor
from typing import Any, Literal

import cv2
import numpy as np

from sapiens2_mm.registry import TRANSFORMS

from .base import Transform, check_choice
from .maps import (
    pad,
    present_maps,
    resize_nearest,
    resize_sample,
    shifted_camera,
    update_cameras,
)


def check_stride(name: str, size: tuple[int, int], stride: int) -> None:
    """Raise ``ValueError`` unless both sides are multiples of a positive stride."""
    if stride < 1 or size[0] % stride or size[1] % stride:
        raise ValueError(f'{name} must divide size {tuple(size)}, got {stride}')


@TRANSFORMS.register_module()
class Letterbox(Transform):
    """Resize with the aspect kept and pad both sides evenly.

    The padding is 0 in the image and invalid in the masks; left and top get the
    smaller half. Predictions are cut and resized back by ``padding``.

    Modified keys: ``img``, ``img_shape``, ``intrinsics`` and, if the maps are resized,
    all maps and ``map_intrinsics``. Set key: ``padding`` (left, right, top, bottom).

    Args:
        size: (height, width) of the network input.
        rounding: of the resized sides. The reference rounds in training and
            validation and takes the floor in its inference tools.
        with_maps: resize the maps too. At test time they stay at their original size,
            where predictions are compared with them.
        map_stride: sides of the network input over those of the resized maps: 2 for
            targets of 2K at an input of 4K. Image and padding then fill whole pixels
            of the maps.

    Raises:
        ValueError: if ``map_stride`` does not divide both sides.

    Source: Sapiens2 official repository, normal, pointmap and albedo pipelines.
    """

    def __init__(
        self,
        size: tuple[int, int],
        rounding: Literal['round', 'floor'] = 'round',
        with_maps: bool = True,
        map_stride: int = 1,
    ) -> None:
        check_choice('Letterbox: rounding', rounding, ('round', 'floor'))
        check_stride('Letterbox: map_stride', size, map_stride)
        self.size = tuple(size)
        self.rounding = rounding
        self.with_maps = with_maps
        self.map_stride = map_stride

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        height, width = results['img'].shape[:2]
        scale = min(self.size[0] / height, self.size[1] / width)
        to_whole = round if self.rounding == 'round' else floor
        unit = self.map_stride
        # a tiny surplus keeps 1024 * (768 / 768) from falling to 1023
        new_height, new_width = (
            unit * min(max(to_whole(side * scale / unit + 1e-9), 1), limit // unit)
            for side, limit in zip((height, width), self.size, strict=True)
        )
        left = (self.size[1] - new_width) // unit // 2 * unit
        right = self.size[1] - new_width - left
        top = (self.size[0] - new_height) // unit // 2 * unit
        bottom = self.size[0] - new_height - top
        results['padding'] = padding = (left, right, top, bottom)
        new_size = (new_height, new_width)
        resize_sample(results, new_size, with_maps=self.with_maps, map_stride=unit)
        results['img'] = pad(results['img'], padding)
        results['img_shape'] = self.size
        update_cameras(results, shifted_camera, -left, -top, maps=False)
        if self.with_maps:
            padding = tuple(side // unit for side in padding)
            for name in present_maps(results):
                results[name] = pad(results[name], padding)
            if 'map_intrinsics' in results:
                results['map_intrinsics'] = shifted_camera(
                    results['map_intrinsics'], -padding[0], -padding[2]
                )
        return results

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(size={self.size}, rounding={self.rounding!r}, '
            f'with_maps={self.with_maps}, map_stride={self.map_stride})'
        )


@TRANSFORMS.register_module()
class DenseResize(Transform):
    """Resize to the network's size without keeping the aspect.

    Modified keys: as of ``Letterbox``. Set key: ``padding``, zeros.

    Args:
        size: (height, width) of the network input.
        area_when_shrinking: average over pixels if the width shrinks, else bilinear.
        with_maps: resize the maps too, see ``Letterbox``. Normals are not corrected
            for the stretch.
        map_stride: see ``Letterbox``.

    Raises:
        ValueError: if ``map_stride`` does not divide both sides.

    Source: Sapiens2 official repository, matting pipeline.
    """

    def __init__(
        self,
        size: tuple[int, int],
        area_when_shrinking: bool = True,
        with_maps: bool = True,
        map_stride: int = 1,
    ) -> None:
        check_stride('DenseResize: map_stride', size, map_stride)
        self.size = tuple(size)
        self.area_when_shrinking = area_when_shrinking
        self.with_maps = with_maps
        self.map_stride = map_stride

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        shrinks = self.size[1] < results['img'].shape[1] and self.area_when_shrinking
        method = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
        resize_sample(results, self.size, method, self.with_maps, self.map_stride)
        results['padding'] = (0, 0, 0, 0)
        return results

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(size={self.size}, '
            f'area_when_shrinking={self.area_when_shrinking}, '
            f'with_maps={self.with_maps}, map_stride={self.map_stride})'
        )


ENLARGE = dict(bicubic=cv2.INTER_CUBIC, bilinear=cv2.INTER_LINEAR)


@TRANSFORMS.register_module()
class AreaCubicResize(Transform):
    """Resize the image to one size, whatever its aspect; masks by nearest pixel.

    Area interpolation if the image becomes narrower, else bicubic.

    Set keys: ``img_shape``, ``pad_shape`` (H, W), ``scale_factor`` (x, y) and
    ``keep_ratio`` (False), as mmseg's ``Resize`` does.

    Args:
        size: (height, width) of the result.
        enlarge: interpolation of an image that becomes wider, ``'bicubic'`` or
            ``'bilinear'``.
        label_stride: sides of the result over those of the masks: 2 for labels of 2K
            at an input of 4K. Above 1 a label is that under the center of its pixel,
            not under the corner.

    Raises:
        ValueError: for another interpolation, or a stride that does not divide both
            sides.

    Source: official repository, first public release, segmentation transforms.
    """

    def __init__(
        self, size: tuple[int, int], enlarge: str = 'bicubic', label_stride: int = 1
    ) -> None:
        check_choice('AreaCubicResize: enlarge', enlarge, list(ENLARGE))
        check_stride('AreaCubicResize: label_stride', size, label_stride)
        self.size = size
        self.enlarge = enlarge
        self.label_stride = label_stride

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        height, width = self.size
        old_height, old_width = results['img'].shape[:2]
        interpolation = cv2.INTER_AREA if width < old_width else ENLARGE[self.enlarge]
        results['img'] = cv2.resize(
            results['img'], (width, height), interpolation=interpolation
        )
        for key in results.get('seg_fields', []):
            results[key] = self._resized_labels(results[key])
        results['img_shape'] = results['pad_shape'] = (height, width)
        results['scale_factor'] = (width / old_width, height / old_height)
        results['keep_ratio'] = False
        return results

    def _resized_labels(self, labels: np.ndarray) -> np.ndarray:
        height, width = (side // self.label_stride for side in self.size)
        if self.label_stride > 1:
            return resize_nearest(labels, (height, width))
        return cv2.resize(labels, (width, height), interpolation=cv2.INTER_NEAREST)

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(size={self.size}, enlarge={self.enlarge!r}, '
            f'label_stride={self.label_stride})'
        )
