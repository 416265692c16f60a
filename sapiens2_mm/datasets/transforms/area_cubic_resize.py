"""Resize to a fixed size, each direction with its own interpolation."""

from typing import Any

import cv2
from mmcv.transforms import BaseTransform

from sapiens2_mm.registry import TRANSFORMS

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
