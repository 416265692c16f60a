"""Losses of segmentation."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from sapiens2_mm.registry import MODELS

# Logits per piece: 16 MiB in float32, large enough to keep a GPU busy.
_MAX_ELEMENTS = 2**22


def pixel_chunks(
    logits: Tensor, max_elements: int = _MAX_ELEMENTS
) -> Iterator[tuple[int, slice]]:
    """Yield (sample index, slice of rows) that together cover (B, C, H, W) logits."""
    batch, channels, height, width = logits.shape
    rows = max(1, max_elements // max(1, channels * width))
    for index in range(batch):
        for start in range(0, height, rows):
            yield index, slice(start, min(start + rows, height))


def split_ignored(labels: Tensor, ignore_index: int) -> tuple[Tensor, Tensor]:
    """Labels (B, H, W) with class 0 for ignored pixels, and which are not ignored."""
    valid = labels != ignore_index
    return labels.long().masked_fill(~valid, 0), valid


def check_labels(logits: Tensor, labels: Tensor, ignore_index: int) -> None:
    """Refuse labels of another size than the logits, or beyond their classes.

    Raises:
        ValueError: names both shapes and the labels.
    """
    wrong: list[int] = []
    if labels.device.type == 'cpu':  # elsewhere it would wait for the device
        outside = (labels < 0) | (labels >= logits.shape[1])
        wrong = labels[outside & (labels != ignore_index)].unique().tolist()
    if wrong or logits.ndim != 4 or labels.shape != logits[:, 0].shape:
        raise ValueError(
            f'labels {tuple(labels.shape)} do not fit logits {tuple(logits.shape)}, or '
            f'are no class and not {ignore_index}: {wrong}; see masks and num_classes'
        )


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
    labels, valid = split_ignored(labels, ignore_index)
    weights = valid.float() if class_weight is None else class_weight[labels] * valid
    total = _CrossEntropySum.apply(logits, labels, weights)
    if average == 'pixels':
        return total / max(1, labels.numel())
    return total / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)


class SegLoss(nn.Module):
    """Base class of the losses: the calling convention of mmseg's heads.

    Args:
        loss_weight: factor of the result.
        loss_name: key in the log; must start with ``loss_`` to be trained on.
    """

    def __init__(self, loss_weight: float, loss_name: str) -> None:
        super().__init__()
        self.loss_weight = loss_weight
        self.loss_name = loss_name

    def compute(self, logits: Tensor, labels: Tensor, ignore_index: int) -> Tensor:
        raise NotImplementedError

    def forward(
        self,
        logits: Tensor,
        labels: Tensor,
        weight: Tensor | None = None,
        ignore_index: int = 255,
    ) -> Tensor:
        """Loss of (B, C, H, W) logits against (B, H, W) labels.

        Raises:
            ValueError: if ``weight`` (of a pixel sampler) is given, or the labels do
                not fit the logits.
        """
        if weight is not None:
            name = type(self).__name__
            raise ValueError(f'{name} takes no pixel weights; remove the sampler')
        check_labels(logits, labels, ignore_index)
        return self.loss_weight * self.compute(logits, labels, ignore_index)


@MODELS.register_module()
class WeightedCrossEntropyLoss(SegLoss):
    """Class-weighted cross-entropy.

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
        super().__init__(loss_weight, loss_name)
        averages = ('pixels', 'class_weight')
        if average not in averages:
            raise ValueError(f'average must be one of {averages}, got {average!r}')
        self.class_weight = None if class_weight is None else tuple(class_weight)
        self.average = average
        # Not a buffer: a buffer made on the meta device would lose its values.
        self._weight_on_device: Tensor | None = None

    def compute(self, logits: Tensor, labels: Tensor, ignore_index: int) -> Tensor:
        number, num_classes = len(self.class_weight or logits[0]), logits.shape[1]
        if number != num_classes:
            raise ValueError(f'{number} numbers in class_weight, {num_classes} classes')
        weight = self._weight_on_device
        if self.class_weight and (weight is None or weight.device != logits.device):
            weight = torch.tensor(self.class_weight, device=logits.device).float()
            self._weight_on_device = weight
        return weighted_cross_entropy(
            logits, labels, weight, ignore_index, self.average
        )


def _class_sums(values: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Sum (H, W) values per class of (H, W) labels: (num_classes,).

    Sums each row on its own first: more accurate in float32, and fewer collisions.
    """
    sums = values.new_zeros(values.shape[0], num_classes)
    return sums.scatter_add_(1, labels, values).sum(0)


class _DiceScores(torch.autograd.Function):
    """(B, C) Dice scores of softmax probabilities; keeps no copy of the logits' size.

    dice = (2 sum p g + smooth) / (sum p^2 + sum g^2 + smooth), sums over valid pixels.
    """

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        labels: Tensor,
        valid: Tensor,
        counts: Tensor,
        smooth: float,
    ) -> Tensor:
        overlap = torch.zeros_like(counts)
        power = torch.zeros_like(counts)
        for i, rows in pixel_chunks(logits):
            prob = logits[i, :, rows].float().softmax(0)
            label, keep = labels[i, rows], valid[i, rows]
            at_label = prob.gather(0, label[None])[0] * keep
            overlap[i] += _class_sums(at_label, label, prob.shape[0])
            power[i] += prob.square_().mul_(keep).sum((1, 2))
        numerator = 2 * overlap + smooth
        denominator = power + counts + smooth
        ctx.save_for_backward(logits, labels, valid, numerator, denominator)
        return numerator / denominator

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_scores: Tensor) -> tuple[Tensor | None, ...]:
        logits, labels, valid, numerator, denominator = ctx.saved_tensors
        # d score / d p = hit * g + miss * p, then through the softmax.
        hit = grad_scores * 2 / denominator
        miss = -grad_scores * 2 * numerator / denominator.square()
        grad = torch.empty_like(logits)
        for i, rows in pixel_chunks(logits):
            prob = logits[i, :, rows].float().softmax(0)
            label, keep = labels[i, rows], valid[i, rows]
            d_prob = prob * miss[i, :, None, None]
            d_prob.scatter_add_(0, label[None], hit[i][label][None])
            mean = (d_prob * prob).sum(0)
            grad[i, :, rows] = d_prob.sub_(mean).mul_(prob).mul_(keep)
        return grad, None, None, None, None


def dice_loss(
    logits: Tensor,
    labels: Tensor,
    ignore_index: int = 255,
    include_background: bool = False,
    smooth: float = 1e-3,
) -> Tensor:
    """1 - Dice, averaged over the classes present, then over the batch.

    Computed in float32 whatever the dtype of ``logits``. Squared probabilities in
    the denominator. A sample in which no class counts contributes 0 to the batch mean.

    Args:
        logits: (B, C, H, W).
        labels: (B, H, W) integers in [0, C) or ``ignore_index``.
        ignore_index: label of pixels left out of every sum.
        include_background: whether class 0 counts as a class.
        smooth: added to numerator and denominator; positive, or the loss of a picture
            without any class is not finite.

    Returns:
        Scalar; 0 with a graph if no class counts.
    """
    labels, valid = split_ignored(labels, ignore_index)
    num_classes = logits.shape[1]
    counts = torch.stack(
        [
            _class_sums(v.float(), y, num_classes)
            for v, y in zip(valid, labels, strict=True)
        ]
    )
    scores = _DiceScores.apply(logits, labels, valid, counts, smooth)
    present = counts > 0
    if not include_background:
        present[:, 0] = False
    num_present = present.sum(1).clamp(min=1)
    return (((1 - scores) * present).sum(1) / num_present).mean()


@MODELS.register_module()
class Sapiens2DiceLoss(SegLoss):
    """``dice_loss`` as a loss.

    Args:
        include_background: whether class 0 counts as a class.
        smooth: added to numerator and denominator; above 0.
        loss_weight: factor of the result.
        loss_name: key in the log; must start with ``loss_`` to be trained on.

    Raises:
        ValueError: if ``smooth`` is not positive.

    Source: official repository, first public release, segmentation configs.
    """

    def __init__(
        self,
        include_background: bool = False,
        smooth: float = 1e-3,
        loss_weight: float = 1.0,
        loss_name: str = 'loss_dice',
    ) -> None:
        super().__init__(loss_weight, loss_name)
        if smooth <= 0:  # an ignored picture would be 0 / 0
            raise ValueError(f'smooth must be positive, got {smooth}')
        self.include_background = include_background
        self.smooth = smooth

    def compute(self, logits: Tensor, labels: Tensor, ignore_index: int) -> Tensor:
        return dice_loss(
            logits, labels, ignore_index, self.include_background, self.smooth
        )
