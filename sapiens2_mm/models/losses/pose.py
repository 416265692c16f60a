"""Mean squared error of keypoint heatmaps, plain and with hard keypoint mining."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from sapiens2_mm.registry import MODELS

from ..codecs import SeparableHeatmaps

Heatmaps = Tensor | SeparableHeatmaps


class _ErrorPerMap(torch.autograd.Function):
    """(B, K) mean squared error of each heatmap; keeps the difference, nothing else.

    A 1K batch of 8 holds 480 MB of heatmaps, so each buffer of that size counts.
    """

    @staticmethod
    def forward(ctx: Any, pred: Tensor, target: Tensor) -> Tensor:
        difference = pred - target
        ctx.save_for_backward(difference)
        per_map = difference.flatten(2)
        norm = torch.linalg.vector_norm(per_map, dim=2)
        return norm.square() / per_map.shape[2]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_error: Tensor) -> tuple[Tensor, None]:
        (difference,) = ctx.saved_tensors
        scale = grad_error * (2 / difference.shape[2:].numel())
        return difference * scale[..., None, None], None


class _ErrorPerSeparableMap(torch.autograd.Function):
    """``_ErrorPerMap`` of separable targets; makes no buffer of the heatmaps' size.

    Away from a target's rows the difference is the prediction itself. Values and
    gradients are those of the dense target: only the rows' differences are computed.
    """

    @staticmethod
    def forward(
        ctx: Any, pred: Tensor, strips: Tensor, rows: Tensor, index: Tensor
    ) -> Tensor:
        height, width = pred.shape[2:]
        square = torch.linalg.vector_norm(pred, dim=3).square()
        difference = pred.view(-1, width)[index].view(strips.shape) - strips
        of_rows = torch.linalg.vector_norm(difference, dim=3).square()
        ctx.save_for_backward(pred, difference, index)
        return square.scatter(2, rows, of_rows).sum(2) / (height * width)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_error: Tensor) -> tuple[Tensor, None, None, None]:
        pred, difference, index = ctx.saved_tensors
        scale = (grad_error * (2 / pred.shape[2:].numel()))[..., None, None]
        grad = pred * scale
        rows = (difference * scale).flatten(0, 2)
        grad.view(-1, pred.shape[3]).index_copy_(0, index, rows)
        return grad, None, None, None


def keypoint_mse(
    pred: Tensor, target: Heatmaps, weights: Tensor | None = None
) -> Tensor:
    """Weighted squared error, averaged over all elements.

    Keypoints of weight 0 count in the denominator.

    Args:
        pred: (B, K, H, W) heatmaps; computed in float32 whatever the dtype.
        target: (B, K, H, W) float32, dense or separable; gets no gradient.
        weights: (B, K), or None for 1 everywhere.

    Returns:
        Scalar, float32.

    Raises:
        ValueError: if the shapes do not fit together.
    """
    return _weighted(map_errors(pred, target, weights), weights).mean()


def keypoint_ohkm_mse(
    pred: Tensor, target: Heatmaps, weights: Tensor | None = None, topk: int = 8
) -> Tensor:
    """Weighted squared error of the ``topk`` worst keypoints of each sample.

    Args:
        pred: (B, K, H, W) heatmaps; computed in float32 whatever the dtype.
        target: (B, K, H, W) float32, dense or separable; gets no gradient.
        weights: (B, K), or None for 1 everywhere.
        topk: number of keypoints kept per sample, at most K.

    Returns:
        Scalar, float32.

    Raises:
        ValueError: if the shapes do not fit together, or ``topk`` is above K.
    """
    error = map_errors(pred, target, weights)
    return _worst(_weighted(error, weights), topk).mean()


def map_errors(pred: Tensor, target: Heatmaps, weights: Tensor | None = None) -> Tensor:
    """(B, K) mean squared error of each heatmap, not weighted yet.

    Arguments and errors as for :func:`keypoint_mse`.
    """
    shapes = [tuple(each.shape) for each in (pred, target)]
    shapes.append(shapes[0][:2] if weights is None else tuple(weights.shape))
    if pred.ndim != 4 or shapes != [shapes[0], shapes[0], shapes[0][:2]]:
        raise ValueError(
            'heatmaps, targets (both (B, K, H, W)) and weights (B, K) differ: got '
            f'{shapes}; input size, codec and out_channels must agree'
        )
    if isinstance(target, SeparableHeatmaps):
        pred = pred.float().contiguous()
        first = torch.arange(
            0, pred.shape[:3].numel(), pred.shape[2], device=pred.device
        )
        index = (target.rows.flatten(0, 1) + first[:, None]).flatten()
        return _ErrorPerSeparableMap.apply(pred, target.strips(), target.rows, index)
    return _ErrorPerMap.apply(pred.float(), target.detach().float())


def _weighted(error: Tensor, weights: Tensor | None) -> Tensor:
    return error if weights is None else error * weights


def _worst(error: Tensor, topk: int) -> Tensor:
    if topk > error.shape[1]:
        raise ValueError(f'topk {topk} must be at most {error.shape[1]}, the keypoints')
    return error.topk(topk, dim=1).values


class HeatmapLoss(nn.Module):
    """Base of losses that need no more of a heatmap than its mean squared error."""

    def reduce(self, error: Tensor, weights: Tensor | None) -> Tensor:
        """Scalar loss of (B, K) :func:`map_errors` and weights."""
        raise NotImplementedError

    def forward(
        self, pred: Tensor, target: Heatmaps, weights: Tensor | None = None
    ) -> Tensor:
        """Arguments as for :func:`keypoint_mse`."""
        return self.reduce(map_errors(pred, target, weights), weights)


@MODELS.register_module()
class KeypointMSELoss(HeatmapLoss):
    """:func:`keypoint_mse` times ``loss_weight``.

    Weights apply whenever they are given; there is no switch for them.

    Args:
        loss_weight: factor of the loss; the official configs use 10.
        absent_weight: stands in for weights of 0: of keypoints that are invisible or
            outside the input, whose target is an empty heatmap. One number, or one
            per keypoint. Above 0 the model learns to be silent where a keypoint is
            not in the picture; only for data in which each visible keypoint is
            labeled. 0 as in the official code: such keypoints train nothing.

    Raises:
        ValueError: if ``absent_weight`` is negative, or of another length.

    Source: official losses/pose and configs/pose, first release.
    """

    def __init__(
        self, loss_weight: float = 1.0, absent_weight: float | Sequence[float] = 0.0
    ) -> None:
        super().__init__()
        self.loss_weight = loss_weight
        self.absent_weight = absent_weight
        if not 0 <= np.min(absent_weight) <= np.max(absent_weight) < np.inf:
            raise ValueError(f'absent_weight must be >= 0, got {absent_weight}')

    def reduce(self, error: Tensor, weights: Tensor | None) -> Tensor:
        if weights is not None and self.absent_weight:
            absent = weights.new_tensor(self.absent_weight)
            if absent.ndim and len(absent) != len(weights[0]):
                number = f'{len(absent)} numbers for {len(weights[0])} keypoints'
                raise ValueError(f'KeypointMSELoss: absent_weight has {number}')
            weights = torch.where(weights > 0, weights, absent)
        return self.loss_weight * _weighted(error, weights).mean()


@MODELS.register_module()
class KeypointOHKMMSELoss(HeatmapLoss):
    """:func:`keypoint_ohkm_mse` times ``loss_weight``.

    Args:
        topk: number of keypoints kept per sample; for 308 keypoints the official
            code suggests 128.
        loss_weight: factor of the loss.

    Source: official losses/pose, first release; unused by the released models.
    """

    def __init__(self, topk: int = 8, loss_weight: float = 1.0) -> None:
        super().__init__()
        if topk < 1:
            raise ValueError(
                f'KeypointOHKMMSELoss: topk must be at least 1, got {topk}'
            )
        self.topk = topk
        self.loss_weight = loss_weight

    def reduce(self, error: Tensor, weights: Tensor | None) -> Tensor:
        return self.loss_weight * _worst(_weighted(error, weights), self.topk).mean()


# Whoever changes what one of these does with its target gets a dense one.
SEPARABLE_LOSSES = (KeypointMSELoss, KeypointOHKMMSELoss)
