"""Soft Dice loss over the classes present in the ground truth."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from sapiens2_mm.registry import MODELS

from .pixel_chunks import check_labels, pixel_chunks


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
        smooth: added to numerator and denominator; positive.

    Returns:
        Scalar; 0 with a graph if no class counts.

    Raises:
        ValueError: if ``smooth`` is not positive, or for what ``check_labels`` refuses.
    """
    if smooth <= 0:
        raise ValueError(
            f'dice_loss: smooth must be positive, got {smooth}; it keeps the loss of '
            'an ignored picture finite'
        )
    check_labels(logits, labels, ignore_index)
    valid = labels != ignore_index
    labels = labels.long().masked_fill(~valid, 0)
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
class Sapiens2DiceLoss(nn.Module):
    """Dice loss with the calling convention of mmseg's heads.

    Args:
        include_background: whether class 0 counts as a class.
        smooth: added to numerator and denominator.
        loss_weight: factor of the result.
        loss_name: key in the log; must start with ``loss_`` to be trained on.

    Source: official repository, first public release, segmentation configs.
    """

    def __init__(
        self,
        include_background: bool = False,
        smooth: float = 1e-3,
        loss_weight: float = 1.0,
        loss_name: str = 'loss_dice',
    ) -> None:
        super().__init__()
        self.include_background = include_background
        self.smooth = smooth
        self.loss_weight = loss_weight
        self.loss_name = loss_name

    def forward(
        self,
        logits: Tensor,
        labels: Tensor,
        weight: Tensor | None = None,
        ignore_index: int = 255,
    ) -> Tensor:
        """Loss of (B, C, H, W) logits against (B, H, W) labels.

        Raises:
            ValueError: if ``weight`` (of a pixel sampler) is given.
        """
        if weight is not None:
            raise ValueError(
                'Sapiens2DiceLoss takes no pixel weights; remove the sampler of the '
                'head'
            )
        return self.loss_weight * dice_loss(
            logits, labels, ignore_index, self.include_background, self.smooth
        )
