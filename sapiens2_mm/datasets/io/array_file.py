"""Arrays of numpy and image files, values as stored."""

import io

import cv2
import mmengine.fileio
import numpy as np
from PIL import ExifTags, Image

# EXIF orientation -> the upright array
_UPRIGHT = {
    2: lambda array: array[:, ::-1],
    3: lambda array: array[::-1, ::-1],
    4: lambda array: array[::-1],
    5: lambda array: array.swapaxes(0, 1),
    6: lambda array: np.rot90(array, -1),
    7: lambda array: array[::-1, ::-1].swapaxes(0, 1),
    8: np.rot90,
}


def read_array(path: str, name: str) -> np.ndarray:
    """Array of a ``.npy``, ``.npz`` or image file; colors in RGB order.

    Args:
        path: the file.
        name: array to take out of an ``.npz``, unless it holds only one.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it cannot be read; names the file.
    """
    data = mmengine.fileio.get(path)
    suffix = path.rsplit('.', 1)[-1].lower()
    try:
        if suffix not in ('npy', 'npz'):
            return read_png(data)
        array = np.load(io.BytesIO(data), allow_pickle=False)
        if suffix == 'npy':
            return array
        if name not in array.files and len(array.files) != 1:
            raise ValueError(f'it holds {array.files}, expected {name!r}')
        return array[name if name in array.files else array.files[0]]
    except Exception as err:  # of any kind: what decoders meet in a broken file
        raise ValueError(f'cannot read {name} {path}: {err}') from err


def read_png(data: bytes) -> np.ndarray:
    """Decode an image of 8 or 16 bits; (H, W) or (H, W, C), RGB order, upright."""
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if image is None:
        raise ValueError('it is no image, or cut off')
    if image.ndim == 3:
        bgr, image = image, image.copy()
        cv2.mixChannels([bgr], [image], [0, 2, 2, 0])
    return np.ascontiguousarray(_UPRIGHT.get(_rotation_tag(data), np.asarray)(image))


def _rotation_tag(data: bytes) -> int:
    """EXIF orientation that is still to be applied; OpenCV turns TIFF itself."""
    head = data.lower()
    if b'exif' not in head and b'orientation' not in head:
        return 1  # Pillow would decode the picture to find none
    image = Image.open(io.BytesIO(data))
    tag = image.getexif().get(ExifTags.Base.Orientation, 1)
    return 1 if image.format == 'TIFF' else tag
