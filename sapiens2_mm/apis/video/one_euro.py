"""The 1 Euro filter for many points at once."""

import numpy as np


class OneEuroFilter:
    """Smooths points that are seen at any times: calm when slow, prompt when fast.

    A low-pass filter of the first order whose cutoff frequency is ``min_cutoff + beta *
    speed``; the speed itself is smoothed with ``speed_cutoff``. Each point has its own
    clock: one that is not visible comes back as it is and leaves no trace, so that a
    guess never drags the point when it is seen again.

    Args:
        min_cutoff: Hz, for points at rest; smaller is smoother and later.
        beta: Hz of cutoff per unit of speed; larger follows movements more closely.
        speed_cutoff: Hz, of the filter of the speed.

    Raises:
        ValueError: if a cutoff is not positive or ``beta`` is negative.

    Source: Casiez, Roussel and Vogel, "1 Euro Filter: A Simple Speed-based Low-pass
    Filter for Noisy Input in Interactive Systems", CHI 2012. There each coordinate has
    a cutoff; here one point has one, from the length of its velocity, so that the
    result does not depend on the axes.
    """

    def __init__(
        self, min_cutoff: float = 1.0, beta: float = 10.0, speed_cutoff: float = 1.0
    ) -> None:
        if not (min_cutoff > 0 and speed_cutoff > 0 and beta >= 0):
            raise ValueError(
                'cutoffs must be positive and beta must not be negative, got '
                f'min_cutoff={min_cutoff}, beta={beta}, speed_cutoff={speed_cutoff}'
            )
        self.min_cutoff = min_cutoff
        self.beta = beta
        self.speed_cutoff = speed_cutoff
        self._time: np.ndarray | None = None

    def __call__(
        self,
        points: np.ndarray,
        time: float,
        visible: np.ndarray | None = None,
        scale: float = 1.0,
    ) -> np.ndarray:
        """Smooth the next points.

        Args:
            points: (K, D), the same K at each call.
            time: in seconds, later than at the call before.
            visible: (K,) bool; all if None.
            scale: length in which the speed is measured, such as the size of a person.

        Returns:
            (K, D) float64.
        """
        points = np.asarray(points, float)
        if self._time is None:
            self._time = np.full(len(points), -np.inf)
            self._points = points.copy()
            self._velocity = np.zeros_like(points)
        seen = np.isfinite(points).all(axis=1)
        if visible is not None:
            seen &= visible
        new = seen & np.isinf(self._time)
        self._points[new] = points[new]
        old = seen & ~new
        step = (time - self._time[old])[:, None]
        moved = points[old] - self._points[old]
        velocity = self._velocity[old]
        velocity += _weight(step, self.speed_cutoff) * (moved / step - velocity)
        self._velocity[old] = velocity
        speed = np.linalg.norm(velocity, axis=1, keepdims=True) / scale
        weight = _weight(step, self.min_cutoff + self.beta * speed)
        self._points[old] += weight * moved
        self._time[seen] = time
        return np.where(seen[:, None], self._points, points)


def _weight(step: np.ndarray, cutoff: float | np.ndarray) -> np.ndarray:
    """Weight of the new value after ``step`` seconds at a cutoff in Hz."""
    return 1 / (1 + 1 / (2 * np.pi * cutoff * step))
