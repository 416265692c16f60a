"""Bring an image to the size of the network."""

from math import floor
from typing import Any, Literal

import cv2
import numpy as np
from mmcv.transforms import BaseTransform

from sapiens2_mm.registry import TRANSFORMS

from .maps import (
    MAPS,
    present_maps,
    resize_linear,
    resize_maps,
    scaled_camera,
    shifted_camera,
    update_cameras,
)


@TRANSFORMS.register_module()
class Letterbox(BaseTransform):
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

    Source: Sapiens2 official repository, normal, pointmap and albedo pipelines.
    """

    def __init__(
        self,
        size: tuple[int, int],
        rounding: Literal['round', 'floor'] = 'round',
        with_maps: bool = True,
    ) -> None:
        if rounding not in ('round', 'floor'):
            raise ValueError(
                f"Letterbox: rounding must be 'round' or 'floor', got {rounding!r}"
            )
        self.size = tuple(size)
        self.rounding = rounding
        self.with_maps = with_maps

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        height, width = results['img'].shape[:2]
        scale = min(self.size[0] / height, self.size[1] / width)
        to_whole = round if self.rounding == 'round' else floor
        # a tiny surplus keeps 1024 * (768 / 768) from falling to 1023
        new_height, new_width = (
            min(max(to_whole(side * scale + 1e-9), 1), limit)
            for side, limit in zip((height, width), self.size, strict=True)
        )
        left = (self.size[1] - new_width) // 2
        right = self.size[1] - new_width - left
        top = (self.size[0] - new_height) // 2
        bottom = self.size[0] - new_height - top

        def pad(values: np.ndarray) -> np.ndarray:
            border = ((top, bottom), (left, right)) + ((0, 0),) * (values.ndim - 2)
            return np.pad(values, border)

        new_size = (new_height, new_width)
        results['img'] = pad(resize_linear(results['img'], new_size))
        results['img_shape'] = self.size
        results['padding'] = (left, right, top, bottom)
        if self.with_maps:
            resize_maps(results, new_size)
            for name in present_maps(results):
                results[name] = pad(results[name])
        factors = (new_width / width, new_height / height)
        update_cameras(results, scaled_camera, *factors, maps=self.with_maps)
        update_cameras(results, shifted_camera, -left, -top, maps=self.with_maps)
        return results

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(size={self.size}, rounding={self.rounding!r}, '
            f'with_maps={self.with_maps})'
        )


@TRANSFORMS.register_module()
class DenseResize(BaseTransform):
    """Resize to the network's size without keeping the aspect.

    Modified keys: as of ``Letterbox``. Set key: ``padding``, zeros.

    Args:
        size: (height, width) of the network input.
        area_when_shrinking: average over pixels if the width shrinks, else bilinear.
        with_maps: resize the maps too, see ``Letterbox``. Normals are not corrected
            for the stretch.

    Source: Sapiens2 official repository, matting pipeline.
    """

    def __init__(
        self,
        size: tuple[int, int],
        area_when_shrinking: bool = True,
        with_maps: bool = True,
    ) -> None:
        self.size = tuple(size)
        self.area_when_shrinking = area_when_shrinking
        self.with_maps = with_maps

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        height, width = results['img'].shape[:2]
        shrinks = self.size[1] < width and self.area_when_shrinking
        method = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
        results['img'] = cv2.resize(
            results['img'], self.size[::-1], interpolation=method
        )
        results['img_shape'] = self.size
        results['padding'] = (0, 0, 0, 0)
        if self.with_maps:
            for name in present_maps(results):
                if MAPS[name].linear:
                    results[name] = cv2.resize(
                        results[name], self.size[::-1], interpolation=method
                    )
            resize_maps(results, self.size)  # the linear ones fit already
        factors = (self.size[1] / width, self.size[0] / height)
        update_cameras(results, scaled_camera, *factors, maps=self.with_maps)
        return results

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(size={self.size}, '
            f'area_when_shrinking={self.area_when_shrinking}, '
            f'with_maps={self.with_maps})'
        )


_ENLARGE = dict(bicubic=cv2.INTER_CUBIC, bilinear=cv2.INTER_LINEAR)


@TRANSFORMS.register_module()
class AreaCubicResize(BaseTransform):
    """Resize the image to one size, whatever its aspect; masks by nearest pixel.

    Area interpolation if the image becomes narrower, else bicubic.

    Set keys: ``img_shape``, ``pad_shape`` (H, W), ``scale_factor`` (x, y) and
    ``keep_ratio`` (False), as mmseg's ``Resize`` does.

    Args:
        size: (height, width) of the result.
        enlarge: interpolation of an image that becomes wider, ``'bicubic'`` or
            ``'bilinear'``.

    Raises:
        ValueError: for another interpolation.

    Source: official repository, first public release, segmentation transforms.
    """

    def __init__(self, size: tuple[int, int], enlarge: str = 'bicubic') -> None:
        if enlarge not in _ENLARGE:
            raise ValueError(
                f'AreaCubicResize: enlarge must be one of {list(_ENLARGE)}, got '
                f'{enlarge!r}'
            )
        self.size = size
        self.enlarge = enlarge

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        height, width = self.size
        old_height, old_width = results['img'].shape[:2]
        interpolation = cv2.INTER_AREA if width < old_width else _ENLARGE[self.enlarge]
        results['img'] = cv2.resize(
            results['img'], (width, height), interpolation=interpolation
        )
        for key in results.get('seg_fields', []):
            results[key] = cv2.resize(
                results[key], (width, height), interpolation=cv2.INTER_NEAREST
            )
        results['img_shape'] = results['pad_shape'] = (height, width)
        results['scale_factor'] = (width / old_width, height / old_height)
        results['keep_ratio'] = False
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}(size={self.size}, enlarge={self.enlarge!r})'
