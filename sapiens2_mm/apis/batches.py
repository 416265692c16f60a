"""Images and batches of the inference functions."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ImageLike = str | Path | np.ndarray


def image_records(images: ImageLike | Sequence[ImageLike]) -> list[dict[str, Any]]:
    """What a pipeline starts with, for one image or several.

    Raises:
        TypeError: for anything but paths and arrays.
    """
    one = isinstance(images, ImageLike) or not isinstance(images, Iterable)
    records = []
    for image in [images] if one else images:
        if not isinstance(image, ImageLike):
            raise TypeError(f'expected paths or arrays, got {type(image).__name__}')
        is_array = isinstance(image, np.ndarray)
        records.append(dict(img=image) if is_array else dict(img_path=str(image)))
    return records


def split_batches(items: Sequence, batch_size: int) -> list[Sequence]:
    """Consecutive parts of at most ``batch_size`` items.

    Raises:
        ValueError: if ``batch_size`` is under 1.
    """
    if batch_size < 1:
        raise ValueError(f'batch_size must be at least 1, got {batch_size}')
    return [items[i : i + batch_size] for i in range(0, len(items), batch_size)]
