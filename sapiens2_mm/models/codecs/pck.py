"""Share of heatmaps whose maximum is in the right place."""

from torch import Tensor

from .separable import SeparableHeatmaps
from .udp_heatmap import heatmap_maximum


def heatmap_hits(
    pred: Tensor, target: Tensor | SeparableHeatmaps, threshold: float = 0.05
) -> Tensor:
    """Whether heatmap maxima lie close to the target's.

    Args:
        pred: (B, K, H, W).
        target: (B, K, H, W).
        threshold: largest distance, after dividing x by H and y by W. This order
            is the one of mmpose and of the official training log.

    Returns:
        (B, K) bool.
    """
    pred_locations, pred_values = heatmap_maximum(pred.detach())
    if isinstance(target, SeparableHeatmaps):
        target_locations, target_values = target.maximum()
    else:
        target_locations, target_values = heatmap_maximum(target)
    pred_locations.masked_fill_(pred_values.unsqueeze(-1) <= 0, -1)
    target_locations.masked_fill_(target_values.unsqueeze(-1) <= 0, -1)
    offset = (pred_locations - target_locations).float()
    offset /= offset.new_tensor(pred.shape[-2:])
    return offset.norm(dim=-1) < threshold


def mean_hits(hits: Tensor, weights: Tensor) -> Tensor:
    """Mean over keypoints of the mean over the batch.

    Args:
        hits: (B, K) bool.
        weights: (B, K); keypoints with weight 0 do not count.

    Returns:
        Scalar; 0 if none counts.
    """
    counted = weights > 0
    count = counted.sum(0)
    accuracy = (hits & counted).sum(0) / count.clamp(min=1)  # (K,)
    return accuracy.sum() / (count > 0).sum().clamp(min=1)


def heatmap_pck(
    pred: Tensor,
    target: Tensor | SeparableHeatmaps,
    weights: Tensor,
    threshold: float = 0.05,
) -> Tensor:
    """Share of keypoints whose heatmap maximum lies close to the target's.

    Arguments as of ``heatmap_hits``; the mean is that of ``mean_hits``.
    """
    return mean_hits(heatmap_hits(pred, target, threshold), weights)
