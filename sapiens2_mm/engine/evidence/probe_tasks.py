"""Losses, metrics and titles of the five tasks that probes are trained on."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from sapiens2_mm.datasets.metainfo.humans29 import CLASS_WEIGHTS
from sapiens2_mm.datasets.metainfo.humans308 import METAINFO as POSE_METAINFO
from sapiens2_mm.evaluation.confusion import confusion_matrix, confusion_scores
from sapiens2_mm.evaluation.functional import (
    angular_error,
    color_sums,
    distance_sums,
)
from sapiens2_mm.models.codecs.udp_heatmap import (
    decode_udp_heatmaps,
    separable_udp_heatmaps,
)
from sapiens2_mm.models.heads.dense_head import resize_map
from sapiens2_mm.models.heads.pointmap_head import mean_depth
from sapiens2_mm.models.losses.masked import masked_l1
from sapiens2_mm.models.losses.pose import keypoint_mse
from sapiens2_mm.models.losses.seg import weighted_cross_entropy

from .probe_data import ProbeData

NUM_CLASSES = len(CLASS_WEIGHTS)
_SIGMA = 1.0  # of the heatmaps, patches
_BLUR_KERNEL = 3
_POINT_UNIT = 10.0  # of predicted points, canonical meters
_PCK_THRESHOLD = 0.05


@dataclass(frozen=True)
class ProbeTask:
    """One task of the probes.

    Args:
        title: of its metric, with the unit.
        channels: of its prediction, on the grid of patches.
        loss: prediction (B, channels, h, w) and data to a scalar.
        measure: prediction and data to sums per image, (B, ...).
        metric: sums of any number of images, added up, to the metric.
        larger_is_better: the metric's direction.
    """

    title: str
    channels: int
    loss: Callable[[Tensor, ProbeData], Tensor]
    measure: Callable[[Tensor, ProbeData], Tensor]
    metric: Callable[[Tensor], float]
    larger_is_better: bool = False


def _pose_loss(pred: Tensor, data: ProbeData) -> Tensor:
    sizes = _width_height(data.images), _width_height(pred)
    return keypoint_mse(
        pred, *separable_udp_heatmaps(data.keypoints, data.visible, *sizes, _SIGMA)
    )


def _pose_measure(pred: Tensor, data: ProbeData) -> Tensor:
    size = pred.new_tensor(_width_height(data.images))
    points, _ = decode_udp_heatmaps(pred, size.tolist(), _BLUR_KERNEL)
    points = points * (size - 1) / size  # see the codec: no exact inverse of encoding
    distance = ((points - data.keypoints) / data.box[:, None]).norm(dim=-1)
    hits = (distance < _PCK_THRESHOLD) * data.visible
    return torch.stack((hits.sum(1), data.visible.sum(1)), dim=1)


def _seg_measure(pred: Tensor, data: ProbeData) -> Tensor:
    pred = resize_map(pred, data.labels.shape[-2:]).argmax(1)
    pairs = zip(pred, data.labels, strict=True)
    return torch.stack([confusion_matrix(*pair, NUM_CLASSES) for pair in pairs])


def _map_loss(pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    return masked_l1(resize_map(pred, target.shape[-2:]), target, mask)


def _normal_measure(pred: Tensor, data: ProbeData) -> Tensor:
    return _per_image(_angles, pred, data.normal, data.mask)


def _points_loss(pred: Tensor, data: ProbeData) -> Tensor:
    depth = mean_depth(data.points, data.mask)
    return _map_loss(pred * _POINT_UNIT / depth, data.points / depth, data.mask)


def _points_measure(pred: Tensor, data: ProbeData) -> Tensor:
    scale = data.scale[:, :, None, None]
    pred = pred * _POINT_UNIT / scale
    return _per_image(_distances, pred, data.points / scale, data.mask)


def _albedo_measure(pred: Tensor, data: ProbeData) -> Tensor:
    return _per_image(_squares, pred.clamp(0, 1), data.albedo, data.mask)


def _angles(pred: Tensor, target: Tensor, mask: Tensor) -> list[Tensor]:
    angles = angular_error(pred, target, mask)
    return [angles.sum(), mask.sum()]


def _distances(pred: Tensor, target: Tensor, mask: Tensor) -> list[Tensor]:
    sums = distance_sums(pred, target, mask, (1.0,))
    return [sums['distance_sum'], sums['count']]


def _squares(pred: Tensor, target: Tensor, mask: Tensor) -> list[Tensor]:
    sums = color_sums(pred, target, mask)
    return [sums['square_sum'], sums['count']]


def _per_image(
    sums: Callable[..., list[Tensor]], pred: Tensor, target: Tensor, mask: Tensor
) -> Tensor:
    """(B, 2) sums of each image at the size of the target."""
    samples = zip(resize_map(pred, target.shape[-2:]), target, mask, strict=True)
    return torch.stack([torch.stack(sums(*sample)) for sample in samples])


def _width_height(x: Tensor) -> tuple[int, int]:
    return x.shape[-1], x.shape[-2]


def _ratio(factor: float) -> Callable[[Tensor], float]:
    return lambda total: factor * float(total[0]) / float(total[1])


TASKS = {
    'pose': ProbeTask(
        title='pose PCK@0.05, %',
        channels=len(POSE_METAINFO['keypoint_info']),
        loss=_pose_loss,
        measure=_pose_measure,
        metric=_ratio(100),
        larger_is_better=True,
    ),
    'seg': ProbeTask(
        title='seg mIoU, %',
        channels=NUM_CLASSES,
        loss=lambda pred, data: weighted_cross_entropy(
            resize_map(pred, data.labels.shape[-2:]),
            data.labels,
            pred.new_tensor(CLASS_WEIGHTS),
        ),
        measure=_seg_measure,
        metric=lambda total: 100 * confusion_scores(total.numpy())[0]['mIoU'],
        larger_is_better=True,
    ),
    'normal': ProbeTask(
        title='normal error, deg',
        channels=3,
        loss=lambda pred, data: _map_loss(pred, data.normal, data.mask),
        measure=_normal_measure,
        metric=_ratio(1),
    ),
    'pointmap': ProbeTask(
        title='pointmap error, m',
        channels=3,
        loss=_points_loss,
        measure=_points_measure,
        metric=_ratio(1),
    ),
    'albedo': ProbeTask(
        title='albedo RMSE x100',
        channels=3,
        loss=lambda pred, data: _map_loss(pred, data.albedo, data.mask),
        measure=_albedo_measure,
        metric=lambda total: 100 * float(total[0] / total[1]) ** 0.5,
    ),
}
