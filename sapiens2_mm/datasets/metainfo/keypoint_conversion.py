"""Keypoints of one set from those of another, by names."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from mmengine.logging import print_log

from .keypoint_sets import SetPoint, keypoint_set


class KeypointConversion:
    """Takes keypoints to a set such as COCO's 17.

    A point of the set is exact (the same point of the body), derived (the mean of
    other points, with the lowest of their scores), or absent (NaN, score 0). Of an own
    keypoint set those points are found whose sources it has, or the name itself.

    Args:
        names: of the keypoints to convert, in their order.
        target: one of ``KEYPOINT_SETS``.

    Attributes:
        target: the ``KeypointSet``.
        points: its points, with the sources that these names have.
        absent: (K',) bool.

    Raises:
        ValueError: for another target, or if all its points are absent.
    """

    def __init__(self, names: Sequence[str], target: str) -> None:
        self.target = keypoint_set(target)
        ids = {name: number for number, name in enumerate(names)}
        self.points = tuple(_found(point, ids) for point in self.target.points)
        counts = np.array([len(point.sources) for point in self.points])
        self.absent = counts == 0
        if self.absent.all():
            raise ValueError(
                f'none of the {len(ids)} keypoint names is known to {target!r}; it '
                f'needs some of {sorted(_sources(self.target.points))[:20]}'
            )
        if self.absent.any():
            lacking = [point.name for point in self.points if point.kind == 'absent']
            print_log(
                f'{target}: {len(lacking)} of {len(counts)} keypoints are absent '
                f'(score 0): {", ".join(lacking)}',
                logger='current',
                level=logging.WARNING,
            )
        self._num_keypoints = len(ids)
        self._index = [ids[name] for point in self.points for name in point.sources]
        self._counts = counts[~self.absent].astype(np.float32)
        self._starts = np.cumsum([0, *counts[~self.absent][:-1]])

    def __call__(
        self, keypoints: np.ndarray, scores: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Convert the keypoints of N people.

        Args:
            keypoints: (N, K, D).
            scores: (N, K).

        Returns:
            (N, K', D) with NaN where absent, and (N, K') with 0.

        Raises:
            ValueError: if K is not the number of names.
        """
        if keypoints.shape[1:2] != (self._num_keypoints,):
            raise ValueError(
                f'expected keypoints of shape (N, {self._num_keypoints}, D), one per '
                f'name, got {keypoints.shape}'
            )
        shape = (len(keypoints), len(self.points))
        points = np.full((*shape, keypoints.shape[2]), np.nan, keypoints.dtype)
        values = np.zeros(shape, scores.dtype)
        sums = np.add.reduceat(keypoints[:, self._index], self._starts, axis=1)
        points[:, ~self.absent] = sums / self._counts[:, None]
        values[:, ~self.absent] = np.minimum.reduceat(
            scores[:, self._index], self._starts, axis=1
        )
        return points, values


@cache
def conversion_of(names: tuple[str, ...], target: str) -> KeypointConversion:
    """The conversion of these names; built and logged once."""
    return KeypointConversion(names, target)


def _found(point: SetPoint, names: Collection[str]) -> SetPoint:
    if point.sources and all(source in names for source in point.sources):
        return point
    if point.name in names:
        return replace(point, kind='exact', sources=(point.name,))
    return replace(point, kind='absent', sources=())


def _sources(points: Sequence[SetPoint]) -> set[str]:
    return {source for point in points for source in point.sources}
