"""What transforms share: random action, and checks of arguments and of samples."""

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from mmcv.transforms import BaseTransform
from mmcv.transforms.utils import cache_randomness


class Transform(BaseTransform):
    """A step that names itself if a step before it is missing."""

    def __call__(self, results: dict[str, Any]) -> dict[str, Any] | None:
        """``transform``.

        Raises:
            ValueError: if ``results`` lacks a key.
        """
        try:
            return super().__call__(results)
        except KeyError as err:
            raise ValueError(
                f'{type(self).__name__}: the sample of {results.get("img_path")} has '
                f'no {err}; put the step that sets it before this one'
            ) from err


class RandomTransform(Transform):
    """A change made with probability ``prob``.

    A subclass says which parameters the change has and how it is made. Inside mmcv's
    ``cache_random_params`` all samples get the same.

    Args:
        prob: probability to change a sample.
    """

    def __init__(self, prob: float) -> None:
        self.prob = prob

    def parameters(self, size: tuple[int, int]) -> Any:
        """Random parameters for an image of (height, width); None to leave it."""
        return True

    def apply(self, results: dict[str, Any], parameters: Any) -> None:
        """Change ``results``."""
        raise NotImplementedError

    @cache_randomness
    def draw(self, size: tuple[int, int]) -> Any:
        """``parameters``, or None with probability ``1 - prob``."""
        return self.parameters(size) if np.random.rand() < self.prob else None

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        parameters = self.draw(results['img'].shape[:2])
        if parameters is not None:
            self.apply(results, parameters)
        return results


def check_range(
    name: str, value: Sequence[float], highest: float = inf, zero: bool = False
) -> None:
    """Raise ``ValueError`` unless ``value`` is (smallest, largest), above 0.

    Args:
        name: of the argument, for the error.
        value: two numbers.
        highest: that the largest may reach.
        zero: whether 0 is allowed.
    """
    low, high = value
    if not (low <= high <= highest and (low > 0 or (zero and low == 0))):
        raise ValueError(
            f'{name} must be two numbers in {"[" if zero else "("}0, {highest}], '
            f'smallest first, got {tuple(value)}'
        )


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise ``ValueError`` unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f'{name} must be one of {list(choices)}, got {value!r}')


def get_entry(results: dict[str, Any], key: str, advice: str) -> Any:
    """``results[key]``; the error says what to do if the sample has none."""
    if key not in results:
        raise ValueError(
            f'the sample of {results.get("img_path")} has no {key}; {advice}'
        )
    return results[key]
