"""Reading images for training that goes on without the bad ones."""

from collections.abc import Callable

import numpy as np
from PIL.Image import DecompressionBombError


class UnusableImageError(Exception):
    """An image that a pretraining run leaves out.

    Args:
        name: of the image.
        reason: why.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(describe(name, reason))
        self.name = name
        self.reason = reason


def describe(name: str, reason: str) -> str:
    """One line that names an image once; many reasons do so themselves."""
    return reason if name in reason else f'{name}: {reason}'


def read_usable(
    read: Callable[[], np.ndarray], name: str, min_short_side: int
) -> np.ndarray:
    """Call ``read`` and check its image.

    Args:
        read: returns (H, W, 3) uint8.
        name: of the image, for the message.
        min_short_side: smallest accepted shorter side, pixels.

    Raises:
        UnusableImageError: if the image cannot be read or is too small.
    """
    try:
        image = read()
    except (OSError, ValueError, DecompressionBombError) as err:
        raise UnusableImageError(name, str(err)) from err
    if min(image.shape[:2]) < min_short_side:
        raise UnusableImageError(
            name, f'shorter side {min(image.shape[:2])} is below {min_short_side}'
        )
    return image


def check_skips(skipped: list[tuple[str, str]], max_skips: int, owner: str) -> None:
    """Give up when too many images in a row are unusable.

    Raises:
        RuntimeError: names the last one.
    """
    if len(skipped) > max_skips:
        raise RuntimeError(
            f'{owner}: {len(skipped)} images in a row cannot be used, the last is '
            f'{describe(*skipped[-1])}; check the data and min_short_side'
        )
