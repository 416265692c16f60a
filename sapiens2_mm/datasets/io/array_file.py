"""Arrays of numpy and image files, values as stored."""

import io
import zipfile

import cv2
import mmengine.fileio
import numpy as np


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
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as err:
        raise ValueError(f'cannot read {name} {path}: {err}') from err


def read_png(data: bytes) -> np.ndarray:
    """Decode an image of 8 or 16 bits; (H, W) or (H, W, C), RGB order."""
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if image is None:
        raise ValueError('it is no image, or cut off')
    if image.ndim == 3:
        image = image[..., [2, 1, 0, 3][: image.shape[2]]]
    return image
