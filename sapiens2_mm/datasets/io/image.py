"""Read any picture as 8-bit BGR."""

import io
from pathlib import Path

import mmengine.fileio
import numpy as np
from PIL import ExifTags, Image, ImageOps

# Pillow modes that convert to RGB without loss of meaning; alpha is dropped
_RGB_MODES = {'1', 'L', 'LA', 'P', 'PA', 'RGB', 'RGBA', 'RGBX', 'CMYK', 'YCbCr'}
_UINT16_MODES = {'I;16', 'I;16L', 'I;16B', 'I;16N', 'I'}


def read_image(path: str | Path, backend_args: dict | None = None) -> np.ndarray:
    """Read an image file.

    Gray, palette, CMYK and 16-bit pictures become 8-bit BGR; an alpha channel is
    dropped, not blended; 16-bit values are divided by 257; the orientation in the
    file's EXIF data is applied.

    Args:
        path: local path, or any address that ``mmengine.fileio`` understands.
        backend_args: of ``mmengine.fileio.get``.

    Returns:
        (H, W, 3) uint8, BGR.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: see ``decode_image``.
    """
    data = mmengine.fileio.get(str(path), backend_args=backend_args)
    return decode_image(data, str(path))


def decode_image(data: bytes, path: str) -> np.ndarray:
    """``read_image`` for the content of a file; ``path`` names it in errors.

    Raises:
        ValueError: if it is no image, is cut off, or has an unsupported mode; names
            the file and the mode.
    """
    image = open_image(data, path)
    if image.mode not in _RGB_MODES | _UINT16_MODES:
        raise ValueError(f'cannot read image {path}: unsupported mode {image.mode}')
    if image.mode in _UINT16_MODES:
        return to_bgr_uint8(np.asarray(image).astype(np.uint16), path)
    return np.ascontiguousarray(np.asarray(image.convert('RGB'))[..., ::-1])


def open_image(data: bytes, path: str) -> Image.Image:
    """Decode the content of a file, in the mode it has, upright by its rotation tag.

    Raises:
        ValueError: if it is no image, is cut off, or has values beyond 16 bits; names
            the file.
    """
    try:
        image = Image.open(io.BytesIO(data))
        ImageOps.exif_transpose(image, in_place=True)
    except Exception as err:  # of any kind: what Pillow meets in a broken file
        raise ValueError(f'cannot read image {path}: {err}') from err
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
    try:
        with Image.open(path) as image:
            width, height = image.size
            # Of a PNG without such data Pillow would decode all pixels to find none.
            tagged = image.format == 'JPEG' or 'exif' in image.info
            if tagged and image.getexif().get(ExifTags.Base.Orientation, 1) >= 5:
                width, height = height, width
            return height, width, image.mode
    except FileNotFoundError:
        raise
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
