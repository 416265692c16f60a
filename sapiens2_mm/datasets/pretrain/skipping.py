"""Images that a pretraining run leaves out and replaces."""

from collections.abc import Callable

import numpy as np
from mmengine.dataset import Compose

from ..io.image import Reduction

Skip = tuple[str, str]  # name of an image, reason


def describe_skip(name: str, reason: str) -> str:
    """One line that names an image once; many reasons do so themselves."""
    return reason if name in reason else f'{name}: {reason}'


def read_or_skip(
    read: Callable[[Reduction], np.ndarray],
    name: str,
    min_short_side: int,
    skipped: list[Skip],
    reduction: Reduction,
) -> np.ndarray | None:
    """Call ``read``; None if the image cannot be read or is too small.

    Args:
        read: takes a ``reduction`` as ``decode_image`` does, returns (H, W, 3) uint8.
        name: of the image.
        min_short_side: smallest accepted shorter side, pixels.
        skipped: gets the name of an image that is left out, and why.
        reduction: of an image that is large enough.
    """

    def checked(shape: tuple[int, int]) -> int:
        if min(shape) < min_short_side:
            raise ValueError(f'shorter side {min(shape)} is below {min_short_side}')
        return reduction(shape)

    try:
        return read(checked)
    except (OSError, ValueError) as err:
        skipped.append((name, str(err)))
        return None


def planned_reduction(pipeline: Compose, results: dict) -> Reduction:
    """By how much an image may be reduced for the first step of a pipeline.

    ``MultiViewCrop`` draws its crops for it and keeps them in ``results``.
    """
    plan = getattr(next(iter(pipeline.transforms), None), 'plan', None)
    return (lambda shape: plan(shape, results)) if plan else (lambda shape: 1)


def check_skips(skipped: list[Skip], max_skips: int, owner: str) -> None:
    """Raise a ``RuntimeError`` if too many images in a row are left out."""
    if len(skipped) > max_skips:
        raise RuntimeError(
            f'{owner}: {len(skipped)} images in a row cannot be used, the last is '
            f'{describe_skip(*skipped[-1])}; check the data and min_short_side'
        )
