"""End of a dense pipeline."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from sapiens2_mm.registry import TRANSFORMS
from sapiens2_mm.structures import DenseDataSample

from .base import Transform
from .maps import present_maps

_OTHER_FIELDS = ('gt_scale', 'intrinsics', 'ori_intrinsics')


@TRANSFORMS.register_module()
class PackDenseInputs(Transform):
    """Make tensors and a ``DenseDataSample`` of the results.

    Every map and camera that is there goes into the sample.

    Args:
        meta_keys: copied into the sample's meta information if present.
    """

    def __init__(
        self,
        meta_keys: Sequence[str] = (
            'img_path',
            'ori_shape',
            'img_shape',
            'padding',
            'flip',
            'sample_idx',
        ),
    ) -> None:
        self.meta_keys = tuple(meta_keys)

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        """Returns ``inputs`` (3, H, W) uint8 BGR and ``data_samples``."""
        image = np.ascontiguousarray(results['img'].transpose(2, 0, 1))
        sample = DenseDataSample(
            metainfo={key: results[key] for key in self.meta_keys if key in results}
        )
        for name in present_maps(results):
            values = results[name]
            values = values[None] if values.ndim == 2 else values.transpose(2, 0, 1)
            sample.set_field(torch.from_numpy(np.ascontiguousarray(values)), name)
        for name in _OTHER_FIELDS:
            if name in results:
                values = torch.from_numpy(np.asarray(results[name], np.float32))
                sample.set_field(values, name)
        return {'inputs': torch.from_numpy(image), 'data_samples': sample}

    def __repr__(self) -> str:
        return f'{type(self).__name__}(meta_keys={self.meta_keys})'
