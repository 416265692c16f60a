"""The data sample of dense regression."""

from typing import Any

import numpy as np
import torch
from mmengine.structures import BaseDataElement

# field -> leading dimension; all but the last four are maps (C, H, W)
FIELDS = {
    'gt_normal': 3,
    'gt_pointmap': 3,
    'gt_depth': 1,
    'gt_albedo': 3,
    'gt_alpha': 1,
    'gt_foreground': 3,
    'gt_foreground_mask': 1,
    'gt_mask': 1,
    'pred_normal': 3,
    'pred_pointmap': 3,
    'pred_depth': 1,
    'pred_albedo': 3,
    'pred_alpha': 1,
    'pred_foreground': 3,
    'pred_mask': 1,
    'gt_scale': 1,
    'pred_scale': 1,
    'intrinsics': 3,
    'ori_intrinsics': 3,
}
_VECTORS = {'gt_scale', 'pred_scale'}
_MATRICES = {'intrinsics', 'ori_intrinsics'}


class DenseDataSample(BaseDataElement):
    """Annotations and predictions of one image.

    The camera frame is X right, Y down, Z forward; pixel centers lie at integer
    coordinates. Maps are (C, H, W) tensors, float32 unless said otherwise. In
    training, ``gt_*`` maps have the size of the network input, or a whole part of it
    (``map_stride`` of the resize); at test time that of the original image, as have
    all ``pred_*`` maps.

    ================== ===== =====================================================
    field              C     content
    ================== ===== =====================================================
    normal             3     unit vectors; a surface facing the camera has z < 0
    pointmap           3     (X, Y, Z) in meters
    depth              1     Z in meters; of ``DepthHead``: relative, 0 nearest, 1
                             farthest
    albedo             3     RGB in [0, 1], gamma as in the image file
    alpha              1     opacity in [0, 1]
    foreground         3     RGB in [0, 1], multiplied by alpha
    gt_foreground_mask 1     bool, where ``gt_foreground`` is known
    gt_mask            1     bool, where the annotation is known
    pred_mask          1     bool, the foreground that a caller asked for; outside,
                             every ``pred_*`` map is 0
    gt_scale           (1,)  canonical focal length / fx of the network input
    pred_scale         (1,)  the same, predicted; metric = canonical / scale
    intrinsics         (3,3) camera matrix of the network input, pixels
    ori_intrinsics     (3,3) camera matrix of the original image, pixels
    ================== ===== =====================================================

    Meta information: ``img_path``, ``ori_shape`` (H, W), ``img_shape`` (H, W) of the
    network input, ``padding`` (left, right, top, bottom) within it, ``flip``.

    Raises:
        ValueError: if a field above gets a value of another shape.
    """

    def set_field(
        self,
        value: Any,
        name: str,
        dtype: type | tuple[type, ...] | None = None,
        field_type: str = 'data',
    ) -> None:
        if field_type == 'data' and name in FIELDS:
            self._check(name, value)
        super().set_field(value, name, dtype, field_type)

    @staticmethod
    def _check(name: str, value: Any) -> None:
        size = FIELDS[name]
        if name in _VECTORS:
            expected, ndim = f'({size},)', 1
        elif name in _MATRICES:
            expected, ndim = f'({size}, {size})', 2
        else:
            expected, ndim = f'({size}, H, W)', 3
        array = isinstance(value, (torch.Tensor, np.ndarray))
        shape = tuple(value.shape) if array else type(value).__name__
        fits = array and len(shape) == ndim and shape[0] == size
        if name in _MATRICES:
            fits = fits and shape[1] == size
        if not fits:
            raise ValueError(
                f'DenseDataSample.{name}: expected a tensor or array of shape '
                f'{expected}, got {shape}'
            )
