"""Images that a pretraining run leaves out and replaces."""

from collections.abc import Callable

import numpy as np

Skip = tuple[str, str]  # name of an image, reason


def describe_skip(name: str, reason: str) -> str:
    """One line that names an image once; many reasons do so themselves."""
    return reason if name in reason else f'{name}: {reason}'


def read_or_skip(
    read: Callable[[], np.ndarray], name: str, min_short_side: int, skipped: list[Skip]
) -> np.ndarray | None:
    """Call ``read``; None if the image cannot be read or is too small.

    Args:
        read: returns (H, W, 3) uint8.
        name: of the image.
        min_short_side: smallest accepted shorter side, pixels.
        skipped: gets the name of an image that is left out, and why.
    """
    try:
        image = read()
    except (OSError, ValueError) as err:
        skipped.append((name, str(err)))
        return None
    short_side = min(image.shape[:2])
    if short_side < min_short_side:
        skipped.append((name, f'shorter side {short_side} is below {min_short_side}'))
        return None
    return image


def check_skips(skipped: list[Skip], max_skips: int, owner: str) -> None:
    """Raise a ``RuntimeError`` if too many images in a row are left out."""
    if len(skipped) > max_skips:
        raise RuntimeError(
            f'{owner}: {len(skipped)} images in a row cannot be used, the last is '
            f'{describe_skip(*skipped[-1])}; check the data and min_short_side'
        )
