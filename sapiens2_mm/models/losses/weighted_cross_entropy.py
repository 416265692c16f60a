"""Cross-entropy with class weights, averaged over all pixels."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from sapiens2_mm.registry import MODELS

from .pixel_chunks import check_labels, pixel_chunks


class _CrossEntropySum(torch.autograd.Function):
    """Sum over pixels of pixel_weight x (-log softmax at the label), in float32.

    Keeps one float per pixel for the backward pass instead of C.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        log_norm = torch.empty_like(weights)
        total = weights.new_zeros(())
        for i, rows in pixel_chunks(logits):
            piece = logits[i, :, rows].float()
            log_norm[i, rows] = piece.logsumexp(0)
            at_label = piece.gather(0, labels[i, rows][None])[0]
            total += ((log_norm[i, rows] - at_label) * weights[i, rows]).sum()
        ctx.save_for_backward(logits, labels, weights, log_norm)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_total: Tensor) -> tuple[Tensor, None, None]:
        logits, labels, weights, log_norm = ctx.saved_tensors
        grad = torch.empty_like(logits)
        for i, rows in pixel_chunks(logits):
            piece = (logits[i, :, rows].float() - log_norm[i, rows]).exp_()
            label = labels[i, rows][None]
            piece.scatter_add_(0, label, piece.new_full((), -1.0).expand_as(label))
            grad[i, :, rows] = piece.mul_(weights[i, rows] * grad_total)
        return grad, None, None


def weighted_cross_entropy(
    logits: Tensor,
    labels: Tensor,
    class_weight: Tensor | None = None,
    ignore_index: int = 255,
    average: str = 'pixels',
) -> Tensor:
    """Cross-entropy where each pixel counts with the weight of its class.

    Computed in float32 whatever the dtype of ``logits``.

    Args:
        logits: (B, C, H, W).
        labels: (B, H, W) integers in [0, C) or ``ignore_index``.
        class_weight: (C,), or None for 1 everywhere.
        ignore_index: label of pixels that contribute 0.
        average: ``'pixels'`` divides by the number of all pixels, ignored ones
            included; ``'class_weight'`` divides by the sum of the weights of the
            pixels that are not ignored.

    Returns:
        Scalar; 0 with a graph if every pixel is ignored.
    """
    check_labels(logits, labels, ignore_index)
    valid = labels != ignore_index
    labels = labels.long().masked_fill(~valid, 0)
    weights = valid.float() if class_weight is None else class_weight[labels] * valid
    total = _CrossEntropySum.apply(logits, labels, weights)
    if average == 'pixels':
        return total / max(1, labels.numel())
    return total / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)


@MODELS.register_module()
class WeightedCrossEntropyLoss(nn.Module):
    """Class-weighted cross-entropy with the calling convention of mmseg's heads.

    Args:
        class_weight: one weight per class; None weighs all classes alike.
        average: see :func:`weighted_cross_entropy`. The released models use
            ``'pixels'``.
        loss_weight: factor of the result.
        loss_name: key in the log; must start with ``loss_`` to be trained on.

    Source: official repository, first public release, segmentation configs (class
        weights, reduction ``none``, then the mean of all pixels).
    """

    def __init__(
        self,
        class_weight: Sequence[float] | None = None,
        average: str = 'pixels',
        loss_weight: float = 1.0,
        loss_name: str = 'loss_ce',
    ) -> None:
        super().__init__()
        if average not in ('pixels', 'class_weight'):
            raise ValueError(
                "WeightedCrossEntropyLoss: average must be 'pixels' or "
                f"'class_weight', got {average!r}"
            )
        self.class_weight = None if class_weight is None else tuple(class_weight)
        self.average = average
        self.loss_weight = loss_weight
        self.loss_name = loss_name
        # Not a buffer: a buffer made on the meta device would lose its values.
        self._weight_on_device: Tensor | None = None

    def _weight(self, logits: Tensor) -> Tensor | None:
        if self.class_weight is None:
            return None
        if len(self.class_weight) != logits.shape[1]:
            raise ValueError(
                f'WeightedCrossEntropyLoss: {len(self.class_weight)} class weights for '
                f'{logits.shape[1]} classes; set class_weight of the loss to one '
                'weight per class, or to None'
            )
        weight = self._weight_on_device
        if weight is None or weight.device != logits.device:
            weight = torch.tensor(self.class_weight, device=logits.device).float()
            self._weight_on_device = weight
        return weight

    def forward(
        self,
        logits: Tensor,
        labels: Tensor,
        weight: Tensor | None = None,
        ignore_index: int = 255,
    ) -> Tensor:
        """Loss of (B, C, H, W) logits against (B, H, W) labels.

        Raises:
            ValueError: if ``weight`` (of a pixel sampler) is given, or the number of
                class weights is not the number of classes.
        """
        if weight is not None:
            raise ValueError(
                'WeightedCrossEntropyLoss takes no pixel weights; remove the sampler '
                'of the head'
            )
        return self.loss_weight * weighted_cross_entropy(
            logits, labels, self._weight(logits), ignore_index, self.average
        )
