"""Confusion matrix of label maps and the scores that follow from it."""

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor


def confusion_matrix(
    pred: Tensor, label: Tensor, num_classes: int, ignore_index: int = 255
) -> Tensor:
    """Count pixels per (true class, predicted class).

    Args:
        pred: integers in [0, num_classes), any shape.
        label: same shape, integers in [0, num_classes) or ``ignore_index``.
        num_classes: C.
        ignore_index: label of pixels that are not counted.

    Returns:
        (C, C) int64 on the device of ``pred``; rows are true classes.

    Raises:
        ValueError: if shapes differ or a value is out of range.
    """
    if pred.shape != label.shape:
        sizes = f'prediction {tuple(pred.shape)} and label {tuple(label.shape)}'
        raise ValueError(f'{sizes} differ in size')
    label = label.to(pred.device)
    valid = label != ignore_index
    pred, label = pred[valid].long(), label[valid].long()
    for name, values in (('label', label), ('prediction', pred)):
        wrong = values[(values < 0) | (values >= num_classes)].unique().tolist()
        also = f' or {ignore_index} (ignored)' if name == 'label' else ''
        if wrong:
            raise ValueError(
                f'{name} values must be 0 to {num_classes - 1}{also}, got {wrong}'
            )
    flat = label * num_classes + pred
    return flat.bincount(minlength=num_classes**2).view(num_classes, num_classes)


def confusion_scores(
    confusion: np.ndarray,
    metrics: Sequence[str] = ('mIoU',),
    nan_to_num: float | None = None,
    beta: float = 1.0,
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Scores of a confusion matrix, in [0, 1].

    A class that occurs neither in truth nor in prediction has no score (NaN). NaN is
    left out of the means, or counts as ``nan_to_num``.

    Args:
        confusion: (C, C) counts, rows are true classes.
        metrics: any of ``'mIoU'`` (IoU, Acc), ``'mDice'`` (Dice, Acc) and
            ``'mFscore'`` (Fscore, Precision, Recall).
        nan_to_num: what NaN counts as; None leaves it out.
        beta: weight of recall in Fscore.

    Returns:
        ``(summary, per_class)``: ``aAcc`` and the means ``mIoU``, ``mAcc``, ...; and
        (C,) arrays ``IoU``, ``Acc``, ....
    """
    confusion = np.asarray(confusion, dtype=np.float64)
    hit = np.diag(confusion)
    true, pred = confusion.sum(1), confusion.sum(0)
    scores: dict[str, np.ndarray] = {}
    with np.errstate(divide='ignore', invalid='ignore'):
        total = hit.sum() / true.sum()
        recall, precision = hit / true, hit / pred
        if 'mIoU' in metrics:
            scores.update(IoU=hit / (true + pred - hit), Acc=recall)
        if 'mDice' in metrics:
            scores.update(Dice=2 * hit / (true + pred), Acc=recall)
        if 'mFscore' in metrics:
            square = beta**2
            fscore = (1 + square) * precision * recall / (square * precision + recall)
            scores.update(Fscore=fscore, Precision=precision, Recall=recall)
    if nan_to_num is not None:
        scores = {k: np.nan_to_num(v, nan=nan_to_num) for k, v in scores.items()}
    means = {f'm{k}': _nanmean(v) for k, v in scores.items()}
    return {'aAcc': float(total), **means}, scores


def _nanmean(values: np.ndarray) -> float:
    """Mean of what is not NaN; NaN if nothing is, without numpy's warning."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float('nan')


def absent_classes(confusion: np.ndarray) -> list[int]:
    """Classes of which the ground truth has no pixel."""
    return np.flatnonzero(confusion.sum(1) == 0).tolist()


def merge_classes(
    confusion: np.ndarray, classes: Sequence[str], merged: Mapping[str, Sequence[str]]
) -> tuple[np.ndarray, list[str]]:
    """Count several classes as one.

    Args:
        confusion: (C, C) counts, rows are true classes.
        classes: the C names.
        merged: new name -> names that it stands for; others stay.

    Returns:
        (G, G) counts and the G names; a new name has the place of its first.

    Raises:
        ValueError: if a name is none of ``classes``, or in two lists.
    """
    parts = [part for group in merged.values() for part in group]
    if not set(parts) <= set(classes) or len(set(parts)) < len(parts):
        raise ValueError(
            f'merged_classes: expected each name once, and of {list(classes)}, got '
            f'{dict(merged)}'
        )
    group_of = {part: name for name, group in merged.items() for part in group}
    names = list(dict.fromkeys(group_of.get(name, name) for name in classes))
    member = np.zeros((len(names), len(classes)), np.int64)
    for index, name in enumerate(classes):
        member[names.index(group_of.get(name, name)), index] = 1
    return member @ confusion @ member.T, names
