"""Read any picture as 8-bit BGR."""

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import cv2
import mmengine.fileio
import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

# Pillow modes that convert to RGB without loss of meaning; alpha is dropped
_RGB_MODES = {'1', 'L', 'LA', 'P', 'PA', 'RGB', 'RGBA', 'RGBX', 'CMYK', 'YCbCr'}
_UINT16_MODES = {'I;16', 'I;16L', 'I;16B', 'I;16N', 'I'}
Reduction = Callable[[tuple[int, int]], int]


def read_image(
    path: str | Path,
    backend_args: dict | None = None,
    reduction: Reduction | None = None,
) -> np.ndarray:
    """Read an image file.

    Gray, palette, CMYK and 16-bit pictures become 8-bit BGR; an alpha channel is
    dropped, not blended; 16-bit values are divided by 257; the orientation in the
    file's EXIF data is applied; of several frames the first is read, with a warning.

    Args:
        path: local path, or any address that ``mmengine.fileio`` understands.
        backend_args: of ``mmengine.fileio.get``.
        reduction: see ``decode_image``.

    Returns:
        (H, W, 3) uint8, BGR.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: see ``decode_image``.
    """
    data = mmengine.fileio.get(str(path), backend_args=backend_args)
    return decode_image(data, str(path), reduction)


def decode_image(
    data: bytes, path: str, reduction: Reduction | None = None
) -> np.ndarray:
    """``read_image`` for the content of a file.

    Args:
        data: content.
        path: names the file in errors.
        reduction: asked, before anything is decoded, by how much the sides of a picture
            of (height, width) may be divided: 1, 2, 4 or 8. A JPEG is then decoded at
            that size, rounded up, which takes less time; other pictures are not.

    Raises:
        ValueError: if it is no image, is cut off, or has an unsupported mode; names
            the file and the mode.
    """
    return _to_bgr(open_image(data, path, reduction), path)


def pil_to_bgr(image: Image.Image, name: str = 'the PIL image') -> np.ndarray:
    """``read_image`` for an image of Pillow; ``name`` stands for it in errors.

    Raises:
        ValueError: see ``decode_image``.
    """
    with _named_error(name):
        image = ImageOps.exif_transpose(image)  # and it is loaded
    return _to_bgr(image, name)


def _to_bgr(image: Image.Image, name: str) -> np.ndarray:
    if image.mode not in _RGB_MODES | _UINT16_MODES:
        raise ValueError(f'cannot read image {name}: unsupported mode {image.mode}')
    if image.mode in _UINT16_MODES:
        return to_bgr_uint8(np.asarray(image).astype(np.uint16), name)
    if image.mode != 'RGB':
        image = image.convert('RGB')
    return cv2.cvtColor(np.asarray(image), cv2.COLOR_RGB2BGR)


def open_image(
    data: bytes, path: str, reduction: Reduction | None = None
) -> Image.Image:
    """Decode the content of a file, in the mode it has, upright by its rotation tag.

    Args: as for ``decode_image``.

    Raises:
        ValueError: if it is no image, is cut off, or has values beyond 16 bits; names
            the file.
    """
    with _named_error(path):
        image = Image.open(io.BytesIO(data))
    if reduction is not None:
        with _named_error(path):
            orientation = _orientation(image)
        divisor = reduction(image.size[::-1] if orientation < 5 else image.size)
        # The last pixel of a side may stand for fewer; turned, it would be the first.
        while orientation != 1 and any(side % divisor for side in image.size):
            divisor //= 2
        image.draft(None, tuple(side // divisor for side in image.size))  # JPEG only
    with _named_error(path):
        ImageOps.exif_transpose(image, in_place=True)
        image.load()
    # the other frames of MPO, the JPEG of many telephones, are no animation
    if getattr(image, 'is_animated', False) and image.format != 'MPO':
        warnings.warn(f'{path} has {image.n_frames} frames; the first one is read')
    low, high = image.getextrema() if image.mode == 'I' else (0, 0)
    if low < 0 or high > 65535:
        raise ValueError(f'cannot read image {path}: it has values beyond 16 bits')
    return image


def read_header(path: str | Path) -> tuple[int, int, str]:
    """Height and width of the upright picture, and its Pillow mode.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if it is no image; names the file.
    """
    with _named_error(path), Image.open(path) as image:
        width, height = image.size
        if _orientation(image) >= 5:
            width, height = height, width
        return height, width, image.mode


def _orientation(image: Image.Image) -> int:
    """The rotation tag, 1 to 8; from 5 on the sides change places."""
    # Of a PNG without such data Pillow would decode all pixels to find none.
    tagged = image.format in ('JPEG', 'MPO') or 'exif' in image.info
    return image.getexif().get(ExifTags.Base.Orientation, 1) if tagged else 1


@contextmanager
def _named_error(path: str | Path) -> Iterator[None]:
    """Whatever kind of error Pillow meets in a broken file is a ``ValueError``."""
    try:
        yield
    except FileNotFoundError:
        raise
    except UnidentifiedImageError as err:  # its text has the address of the stream
        raise ValueError(f'cannot read image {path}: cannot identify its kind') from err
    except Exception as err:
        raise ValueError(f'cannot read image {path}: {err}') from err


def to_bgr_uint8(image: np.ndarray, name: str = 'the array') -> np.ndarray:
    """Bring an image array to 8-bit BGR.

    Args:
        image: (H, W), (H, W, 1), (H, W, 3) BGR or (H, W, 4) BGRA, uint8 or uint16.
            Alpha is dropped; uint16 is divided by 257.
        name: what to call it in an error.

    Returns:
        (H, W, 3) uint8, BGR.

    Raises:
        ValueError: for another shape or type, or an empty image.
    """
    shape = image.shape
    channels = shape[2] if image.ndim == 3 else 1
    if image.ndim not in (2, 3) or channels not in (1, 3, 4) or 0 in shape:
        raise ValueError(f'{name}: expected shape (H, W[, 1, 3 or 4]), got {shape}')
    if image.dtype == np.uint16:
        image = np.rint(image / 257).astype(np.uint8)
    if image.dtype != np.uint8:
        raise ValueError(f'{name}: expected uint8 or uint16, got {image.dtype}')
    image = image.reshape(*shape[:2], channels)
    if channels == 1:
        image = image.repeat(3, axis=2)
    return np.ascontiguousarray(image[..., :3])
