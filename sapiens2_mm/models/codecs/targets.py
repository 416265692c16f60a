"""Training targets of a pose head, from a batch of data samples."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .separable import SeparableHeatmaps
from .udp_heatmap import separable_udp_heatmaps


def encode_targets(
    batch_data_samples: list[Any],
    codec: Any,
    device: torch.device | str,
    part: slice = slice(None),
) -> tuple[SeparableHeatmaps, Tensor]:
    """Heatmaps of keypoints, made on the device of the model.

    Args:
        batch_data_samples: B of mmpose's, with
            ``gt_instances.{transformed_keypoints,keypoints_visible}`` and, if the
            keypoints weigh differently, ``gt_instance_labels.keypoint_weights``.
        codec: a Gaussian ``mmpose.UDPHeatmap``; its sizes and sigma are taken.
        device: where the targets are made.
        part: which keypoints are wanted.

    Returns:
        Heatmaps (B, K, H, W) and weights (B, K), 0 for keypoints that are invisible or
        outside the input.
    """
    points = []
    for sample in batch_data_samples:
        instances = sample.gt_instances
        visible = np.asarray(instances.keypoints_visible, dtype=np.float32)
        if visible.ndim == 3:  # mmpose's KeypointConverter adds a weight
            visible = visible[..., 0]
        keypoints = np.asarray(instances.transformed_keypoints, dtype=np.float32)
        points.append(np.dstack((keypoints[..., :2], visible)))
    batch = torch.from_numpy(np.concatenate(points)).to(device)[:, part]
    keypoints, visible = batch[..., :2], batch[..., 2]
    size = keypoints.new_tensor(codec.input_size)
    inside = ((keypoints >= 0) & (keypoints < size)).all(-1)
    heatmaps, weights = separable_udp_heatmaps(
        keypoints, visible * inside, codec.input_size, codec.heatmap_size, codec.sigma
    )
    labels = batch_data_samples[0].get('gt_instance_labels', {})
    if 'keypoint_weights' in labels:
        weights = _packed_weights(batch_data_samples)[:, part] * (weights > 0)
    return heatmaps, weights


def packed_targets(batch_data_samples: list[Any]) -> tuple[Tensor, Tensor]:
    """Heatmaps (B, K, H, W) and weights (B, K) that ``GenerateTarget`` made."""
    heatmaps = torch.stack([sample.gt_fields.heatmaps for sample in batch_data_samples])
    return heatmaps, _packed_weights(batch_data_samples)


def _packed_weights(batch_data_samples: list[Any]) -> Tensor:
    labels = [sample.gt_instance_labels for sample in batch_data_samples]
    return torch.cat([each.keypoint_weights for each in labels])
