"""Heatmaps of a pose head, a few keypoints at a time.

308 heatmaps of 1024x768 are 970 MB, and a training step would hold them several times:
predicted, in float32, and as gradients. None is needed as a whole: the predictor is a
1x1 convolution, and what remains of a map is one error, or one point.
"""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.structures import InstanceData
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from ..codecs import (
    decode_udp_heatmaps,
    encode_targets,
    heatmap_hits,
    mean_hits,
)
from ..losses.pose import map_errors

# Heatmap pixels of a person made at once: 308 maps of 256x192 are one pass.
_MAX_PIXELS = 2**24


def keypoint_passes(num_keypoints: int, heatmap_size: Sequence[int]) -> list[slice]:
    """Slices of the keypoints whose heatmaps are made at once."""
    step = max(1, _MAX_PIXELS // (heatmap_size[0] * heatmap_size[1]))
    return [slice(first, first + step) for first in range(0, num_keypoints, step)]


def loss_in_passes(
    head: nn.Module, refined: Tensor, batch_data_samples: list[Any], with_acc: bool
) -> dict[str, Tensor]:
    """``Sapiens2PoseHead.loss`` on targets made from keypoints.

    A pass is computed again for its gradient.

    Args:
        head: the pose head; its loss is one of ``SEPARABLE_LOSSES``.
        refined: (B, C, H, W), what the predictor reads.
        batch_data_samples: B, see ``encode_targets``.
        with_acc: whether ``acc_pose`` is wanted.
    """
    parts = [
        checkpoint(
            _errors, head, refined, batch_data_samples, part, use_reentrant=False
        )
        for part in head.passes
    ]
    errors, weights, hits = (torch.cat(each, 1) for each in zip(*parts, strict=True))
    losses = dict(loss_kpt=head.loss_module.reduce(errors, weights))
    if with_acc:
        losses['acc_pose'] = mean_hits(hits, weights)
    return losses


def _errors(
    head: nn.Module, refined: Tensor, batch_data_samples: list[Any], part: slice
) -> tuple[Tensor, Tensor, Tensor]:
    """(B, k) errors of the maps, weights, and whether the maxima are right."""
    pred = _heatmaps(head, refined, part)
    target, weights = encode_targets(
        batch_data_samples, head.decoder, pred.device, part
    )
    return map_errors(pred, target, weights), weights, heatmap_hits(pred, target)


def decode_in_passes(
    head: nn.Module, refined: list[Tensor], flip_indices: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Keypoints (B, K, 2) and scores (B, K) of ``decode_udp_heatmaps``.

    Args:
        head: the pose head.
        refined: (B, C, H, W), what the predictor reads, of the images and, if heatmaps
            are averaged with those of the mirrored images, of these.
        flip_indices: partner of each keypoint in the mirrored image.
    """
    decoded = []
    for part in head.passes:
        maps = _heatmaps(head, refined[0], part)
        for mirrored in refined[1:]:
            partners = _heatmaps(head, mirrored, list(flip_indices[part]))
            maps = (maps.float() + partners.float().flip(-1)).mul_(0.5)
        size, kernel = head.input_size(maps), head.decoder.blur_kernel_size
        decoded.append(decode_udp_heatmaps(maps.detach(), size, kernel))
    keypoints, scores = (torch.cat(each, 1) for each in zip(*decoded, strict=True))
    return keypoints, scores


def _heatmaps(head: nn.Module, refined: Tensor, part: slice | list[int]) -> Tensor:
    """Heatmaps (B, k, H, W) of some keypoints."""
    predictor = head.conv_pose
    return F.conv2d(refined, predictor.weight[part], predictor.bias[part])


def to_instances(keypoints: Tensor, scores: Tensor) -> list[InstanceData]:
    """One per person: one transfer from the device for all."""
    decoded = torch.cat((keypoints, scores.unsqueeze(-1)), dim=-1).cpu().numpy()
    return [
        InstanceData(keypoints=person[..., :2], keypoint_scores=person[..., 2])
        for person in decoded[:, None]
    ]
