"""What the inferencer takes, one picture after the other."""

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from sapiens2_mm.datasets.io.folder import IMAGE_SUFFIXES, list_images
from sapiens2_mm.datasets.io.image import pil_to_bgr, read_image, to_bgr_uint8

VIDEO_SUFFIXES = (
    *('.3gp', '.asf', '.avi', '.flv', '.m2ts', '.m4v', '.mkv', '.mov', '.mp4', '.mpeg'),
    *('.mpg', '.mts', '.mxf', '.ogv', '.ts', '.vob', '.webm', '.wmv'),
)


@dataclass(frozen=True)
class Picture:
    """A decoded picture.

    Args:
        image: (H, W, 3) uint8, BGR.
        path: of its file; None for an array.
    """

    image: np.ndarray
    path: str | None = None

    @property
    def size(self) -> tuple[int, int]:
        """(height, width)."""
        return self.image.shape[:2]


# An int is the number of a camera.
PictureLike = str | Path | np.ndarray | Image.Image | Picture | int


@dataclass(frozen=True)
class Failure:
    """A picture without a result, and why."""

    path: str
    reason: str


def is_one_picture(inputs: Any) -> bool:
    """Whether the inputs are one picture, neither a folder, a pattern nor several."""
    if isinstance(inputs, str | Path):
        return not Path(inputs).is_dir() and not _is_pattern(inputs)
    return not isinstance(inputs, Sequence | Iterator)


def is_video(source: Any) -> bool:
    """Whether a single source is a video, by its suffix, or a camera."""
    if isinstance(source, str | Path):
        return Path(source).suffix.lower() in VIDEO_SUFFIXES
    return isinstance(source, int) and not isinstance(source, bool)


def iter_pictures(inputs: Any) -> Iterator[PictureLike]:
    """The single pictures and videos of any inputs, in order, not read yet.

    Args:
        inputs: a picture (path, address or array), a video (path, address or number of
            a camera), a folder (its pictures, not those
            of its subfolders, sorted), a pattern such as ``'photos/**/*.jpg'``
            (sorted), or a list or generator of these. A link to nothing in a folder
            counts, so that reading it fails.

    Raises:
        FileNotFoundError: for a folder without pictures, or a pattern without files.
    """
    if isinstance(inputs, str | Path) and Path(inputs).is_dir():
        yield from sorted([*list_images(str(inputs), recursive=False), *_dead(inputs)])
    elif isinstance(inputs, str | Path) and _is_pattern(inputs):
        found = glob.glob(str(inputs), recursive=True)
        files = sorted(path for path in found if not Path(path).is_dir())
        if not files:
            raise FileNotFoundError(f'no file fits the pattern {str(inputs)!r}')
        yield from files
    elif is_one_picture(inputs):
        yield inputs
    else:
        for item in inputs:
            yield from iter_pictures(item)


def read_picture(source: PictureLike, channel_order: str = 'bgr') -> Picture:
    """Decode one picture by the rules of ``read_image``.

    Args:
        source: path, address, array as ``to_bgr_uint8`` takes it, or PIL image. A PIL
            image knows its channels; it is treated like the file it came from. A
            ``Picture`` stays as it is.
        channel_order: of a color array, ``'bgr'`` or ``'rgb'``.

    Raises:
        OSError: if there is no such file.
        TypeError: for anything else, a tensor for example.
        ValueError: if it cannot be read; names the file.
    """
    if isinstance(source, str | Path):
        return Picture(read_image(source), str(source))
    if isinstance(source, Picture):
        return source
    if isinstance(source, Image.Image):
        return Picture(pil_to_bgr(source), getattr(source, 'filename', None) or None)
    if not isinstance(source, np.ndarray):
        raise TypeError(
            'expected pictures as paths, PIL images or arrays (H, W, 3) uint8, got '
            f'{type(source).__name__}; of a tensor give '
            "tensor.permute(1, 2, 0).numpy() in 0..255 and its channel_order='rgb'"
        )
    if channel_order == 'rgb' and source.ndim == 3:
        order = [2, 1, 0, *range(3, source.shape[2])] if source.shape[2] > 2 else [0]
        source = source[..., order]
    return Picture(to_bgr_uint8(source))


def _is_pattern(path: str | Path) -> bool:
    return glob.has_magic(str(path)) and not Path(path).exists()


def _dead(folder: str | Path) -> list[str]:
    """Links of a folder that have a picture's name and lead nowhere."""
    return [
        str(path)
        for path in Path(folder).iterdir()
        if path.suffix.lower() in IMAGE_SUFFIXES
        and path.is_symlink()
        and not path.exists()
    ]
