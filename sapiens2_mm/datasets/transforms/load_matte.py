"""Read an alpha matte and its foreground colour."""

from typing import Any

import numpy as np
from mmcv.transforms import BaseTransform

from sapiens2_mm.registry import TRANSFORMS

from ..io.array_file import read_array

OPAQUE = 0.996  # from here on, the image shows nothing but the foreground


@TRANSFORMS.register_module()
class LoadMatte(BaseTransform):
    """Read ``alpha_path``: a single channel, or RGBA with straight colours.

    Float files hold values in [0, 1]. With RGBA the foreground is known everywhere.
    With alpha alone it is known where the matte is opaque (the image's own colour) and
    where it is 0 (black).

    Required keys: ``img``, ``alpha_path`` (8 or 16 bits).
    Set keys: ``gt_alpha`` (H, W), ``gt_foreground`` (H, W, 3) RGB multiplied by alpha,
    both float32 in [0, 1], and ``gt_foreground_mask`` (H, W) bool.

    Args:
        binary: values above 0 are opaque, as for label maps.

    Raises:
        ValueError: if the matte is not there, cannot be read, has no alpha, another
            size or another range.

    Source: Sapiens2 official repository, matting task.
    """

    needs_annotation = True

    def __init__(self, binary: bool = False) -> None:
        self.binary = binary

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        path = results.get('alpha_path')
        if path is None:
            raise ValueError(
                f'LoadMatte: the sample of {results.get("img_path")} has no '
                'alpha_path; use sapiens2_mm.MattingListDataset'
            )
        values = read_array(path, 'alpha')
        size = results['img'].shape[:2]
        channels = values.shape[2] if values.ndim == 3 else 1
        if values.shape[:2] != size or channels not in (1, 4):
            raise ValueError(
                f'{path}: expected a matte of one channel or RGBA and size {size} like '
                f'its image {results.get("img_path")}, got shape {values.shape}'
            )
        values = values.reshape(*size, channels)
        if self.binary:
            values = (values > 0).astype(np.float32)
        elif np.issubdtype(values.dtype, np.unsignedinteger):
            values = values / np.float32(np.iinfo(values.dtype).max)
        values = values.astype(np.float32)
        if not (values.min() >= 0 and values.max() <= 1):
            raise ValueError(
                f'{path}: expected 8 or 16 bits, or floats in [0, 1], got values from '
                f'{values.min():g} to {values.max():g}'
            )
        alpha = values[..., -1]
        if channels == 4:
            foreground = values[..., :3] * alpha[..., None]
            known = np.ones(size, bool)
        else:
            opaque = alpha >= OPAQUE
            rgb = results['img'][..., ::-1].astype(np.float32) / 255
            foreground = np.where(opaque[..., None], rgb, 0).astype(np.float32)
            known = opaque | (alpha == 0)
        results['gt_alpha'] = np.ascontiguousarray(alpha)
        results['gt_foreground'] = foreground
        results['gt_foreground_mask'] = known
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}(binary={self.binary})'
