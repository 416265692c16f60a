"""Random crop and rotation for matting."""

from typing import Any

import cv2
import numpy as np

from sapiens2_mm.registry import TRANSFORMS

from .base import RandomTransform
from .maps import MAPS, is_linear, pad, present_maps, shifted_camera, update_cameras


@TRANSFORMS.register_module()
class RandomAlphaCrop(RandomTransform):
    """Crop to the box around the matte, with a margin, padded to the old aspect.

    What is added is white with alpha 0.

    Modified keys: ``img``, ``img_shape``, all maps, ``intrinsics``,
    ``map_intrinsics``.

    Args:
        prob: probability to crop.
        margin: smallest and largest margin, as a share of the box's width.
    """

    at_inference = 'refuse'

    def __init__(
        self, prob: float = 0.5, margin: tuple[float, float] = (0.0, 0.1)
    ) -> None:
        super().__init__(prob)
        self.margin = tuple(margin)

    def parameters(self, size: tuple[int, int]) -> float:
        return np.random.uniform(*self.margin)

    def apply(self, results: dict[str, Any], margin: float) -> None:
        rows, cols = np.nonzero(results['gt_alpha'] > 0)
        if not len(rows):
            return
        pixels = round(margin * (np.ptp(cols) + 1))
        height, width = results['img'].shape[:2]
        top, bottom = max(rows.min() - pixels, 0), min(rows.max() + 1 + pixels, height)
        left, right = max(cols.min() - pixels, 0), min(cols.max() + 1 + pixels, width)
        # grow the short side to the aspect of the image
        new_height = max(bottom - top, round((right - left) * height / width))
        new_width = max(right - left, round((bottom - top) * width / height))
        add_rows, add_cols = new_height - (bottom - top), new_width - (right - left)
        above, before = add_rows // 2, add_cols // 2
        padding = (before, add_cols - before, above, add_rows - above)
        for name in ['img', *present_maps(results)]:
            part = results[name][top:bottom, left:right]
            results[name] = pad(part, padding, _fill(name))
        results['img_shape'] = (new_height, new_width)
        update_cameras(results, shifted_camera, left - before, top - above)


@TRANSFORMS.register_module()
class RandomMatteRotate(RandomTransform):
    """Rotate about the center; what comes in has alpha, depth and mask 0.

    For maps without directions only: normals and points would need to turn too.

    Modified keys: ``img``, all maps.

    Args:
        prob: probability to rotate.
        max_angle: degrees to either side.
        border: gray level of what comes in, white by default.

    Raises:
        ValueError: if the results hold normals, points or a camera.
    """

    at_inference = 'refuse'

    def __init__(
        self, prob: float = 0.5, max_angle: float = 60.0, border: int = 255
    ) -> None:
        super().__init__(prob)
        self.max_angle = max_angle
        self.border = border

    def parameters(self, size: tuple[int, int]) -> float:
        return np.random.uniform(-self.max_angle, self.max_angle)

    def apply(self, results: dict[str, Any], angle: float) -> None:
        names = present_maps(results)
        if 'intrinsics' in results or any(MAPS[name].vector for name in names):
            raise ValueError(
                'RandomMatteRotate: normals, points and cameras do not rotate with the '
                f'image; the results hold {names}'
            )
        height, width = results['img'].shape[:2]
        center = ((width - 1) / 2, (height - 1) / 2)
        matrix = cv2.getRotationMatrix2D(center, angle, 1.0)
        for name in ['img', *names]:
            values = results[name]
            rotated = cv2.warpAffine(
                values.astype(np.uint8) if values.dtype == bool else values,
                matrix,
                (width, height),
                flags=cv2.INTER_LINEAR if is_linear(name) else cv2.INTER_NEAREST,
                borderValue=[self.border] * 3 if name == 'img' else _fill(name),
            )
            results[name] = rotated.astype(values.dtype)


def _fill(name: str) -> int:
    """White image; nothing in front, which is known of the foreground."""
    return {'img': 255, 'gt_foreground_mask': 1}.get(name, 0)
