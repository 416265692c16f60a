"""Bring an image to the size of the network."""

from math import floor
from typing import Any, Literal

import cv2

from sapiens2_mm.registry import TRANSFORMS

from .base import Transform, check_choice
from .maps import pad, present_maps, resize_sample, shifted_camera, update_cameras


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

    Source: Sapiens2 official repository, normal, pointmap and albedo pipelines.
    """

    def __init__(
        self,
        size: tuple[int, int],
        rounding: Literal['round', 'floor'] = 'round',
        with_maps: bool = True,
    ) -> None:
        check_choice('Letterbox: rounding', rounding, ('round', 'floor'))
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
        results['padding'] = (left, right, top, bottom)
        resize_sample(results, (new_height, new_width), with_maps=self.with_maps)
        for name in ['img', *(present_maps(results) if self.with_maps else ())]:
            results[name] = pad(results[name], results['padding'])
        results['img_shape'] = self.size
        update_cameras(results, shifted_camera, -left, -top, maps=self.with_maps)
        return results

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(size={self.size}, rounding={self.rounding!r}, '
            f'with_maps={self.with_maps})'
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
        shrinks = self.size[1] < results['img'].shape[1] and self.area_when_shrinking
        method = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
        resize_sample(results, self.size, method, self.with_maps)
        results['padding'] = (0, 0, 0, 0)
        return results

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(size={self.size}, '
            f'area_when_shrinking={self.area_when_shrinking}, '
            f'with_maps={self.with_maps})'
        )


_ENLARGE = dict(bicubic=cv2.INTER_CUBIC, bilinear=cv2.INTER_LINEAR)


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

    Raises:
        ValueError: for another interpolation.

    Source: official repository, first public release, segmentation transforms.
    """

    def __init__(self, size: tuple[int, int], enlarge: str = 'bicubic') -> None:
        check_choice('AreaCubicResize: enlarge', enlarge, list(_ENLARGE))
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
