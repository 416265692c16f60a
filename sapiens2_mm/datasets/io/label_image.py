"""Read and write mask files as raw pixel values."""

from collections.abc import Sequence
from pathlib import Path

import mmengine
import mmengine.fileio
import numpy as np
from PIL import Image

from .image import open_image

_INDEX_MODES = ('L', 'P', '1', 'I;16', 'I;16L', 'I;16B', 'I;16N', 'I')


def read_label_image(
    path: str | Path,
    palette: Sequence[Sequence[int]] | None = None,
    backend_args: dict | None = None,
) -> np.ndarray:
    """Pixel values of a mask, before any mapping.

    Gray (8 or 16 bit), palette (the stored indices, not the colors) and 1-bit files
    hold their values themselves. A color file is read only with a ``palette``.

    Args:
        path: of a lossless image.
        palette: RGB colors; the index of a pixel's color becomes its value. Only
            used for color files.
        backend_args: of ``mmengine.fileio.get``.

    Returns:
        (H, W) uint8 or uint16.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it cannot be read, is a color file without ``palette``, or has
            a color that is not in it; names the file.
    """
    data = mmengine.fileio.get(str(path), backend_args=backend_args)
    image = open_image(data, str(path))
    if image.mode in _INDEX_MODES:
        values = np.asarray(image)
        dtype = np.uint8 if values.dtype.itemsize == 1 else np.uint16
        return values.astype(dtype, copy=False)
    if palette is None or image.mode not in ('RGB', 'RGBA'):
        raise ValueError(
            f'cannot read mask {path}: it holds colors (mode {image.mode}), not class '
            'ids (8-bit gray or palette PNG); give LoadSegAnnotations the palette (RGB)'
        )
    return _colors_to_ids(np.asarray(image.convert('RGB')), palette, str(path))


def write_label_image(
    path: str | Path,
    labels: np.ndarray,
    palette: Sequence[Sequence[int]] | None = None,
) -> None:
    """Write class ids as pixel values of a PNG; folders are made.

    Args:
        path: of the file.
        labels: (H, W) integers >= 0; 8 bits per pixel if all are below 256, else 16.
        palette: RGB colors of the ids, stored with an 8-bit file, so that viewers
            show them while the pixel values stay ids.
    """
    dtype = np.uint8 if labels.size == 0 or labels.max() < 256 else np.uint16
    image = Image.fromarray(labels.astype(dtype))
    if palette and dtype == np.uint8:
        image.putpalette([int(value) for color in palette for value in color])
    mmengine.mkdir_or_exist(Path(path).parent)
    image.save(path, format='PNG', compress_level=3)  # a third of the time of 6


def _colors_to_ids(
    rgb: np.ndarray, palette: Sequence[Sequence[int]], path: str
) -> np.ndarray:
    codes = rgb.astype(np.int32) @ np.array([65536, 256, 1])
    known = np.array(palette, np.int32) @ np.array([65536, 256, 1])
    order = np.argsort(known)
    place = np.searchsorted(known[order], codes).clip(max=len(known) - 1)
    ids = order[place]
    wrong = known[ids] != codes
    if wrong.any():
        raise ValueError(
            f'mask {path}: {int(wrong.sum())} pixels have colors that are not in the '
            f'palette (RGB), such as {np.unique(rgb[wrong], axis=0)[:5].tolist()}'
        )
    return ids.astype(np.uint8 if len(known) <= 256 else np.uint16)
