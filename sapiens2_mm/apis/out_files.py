"""Names and contents of the files of results."""

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import cv2
import numpy as np

from sapiens2_mm.checkpoint.io.atomic import replacing, write_atomically


class FreeNames:
    """Names for files that are neither inputs nor other outputs.

    Capitals do not tell names apart, as on some file systems.

    Args:
        inputs: files that must not be written.
    """

    def __init__(self, inputs: Iterable[str | Path]) -> None:
        self._taken = {_key(path) for path in inputs}

    def claim(self, path: Path) -> Path:
        """``path``, if it is free.

        Raises:
            ValueError: if it is not.
        """
        if _key(path) in self._taken:
            raise ValueError(f'{path} is an input; choose another folder for results')
        self._taken.add(_key(path))
        return path

    def take(self, stem: str, folders: Sequence[Path], ends: Iterable[str]) -> str:
        """``stem``, or with a number, so that all ``folders/stem + ends`` are free."""
        ends, name, number = list(ends), stem, 0
        while True:
            keys = {_key(folder / (name + end)) for folder in folders for end in ends}
            if not keys & self._taken:
                self._taken |= keys
                return name
            number += 1
            name = f'{stem}_{number}'


def _key(path: str | Path) -> str:
    return str(Path(path).resolve()).casefold()


def write_png(path: Path, image: np.ndarray) -> None:
    """Write (H, W, 3) uint8 RGB; the file appears complete or not at all."""
    encoded, data = cv2.imencode('.png', cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    if not encoded:
        raise OSError(f'{path}: OpenCV cannot encode an array {image.shape}')
    write_atomically(path, data.tobytes())


def write_npz(path: Path, **arrays: np.ndarray) -> None:
    """Write arrays as ``np.savez``; the file appears complete or not at all.

    Integers are compressed, at a level that takes a third of the time of numpy's. Maps
    of floats are not: it would take longer than all else of a tiny model and save 8 %
    of the file.
    """
    integers = all(values.dtype.kind in 'iu' for values in arrays.values())
    kind = ZIP_DEFLATED if integers else ZIP_STORED
    with replacing(path) as temporary, ZipFile(temporary, 'w', kind, True, 2) as file:
        for name, values in arrays.items():
            with file.open(f'{name}.npy', 'w', force_zip64=True) as entry:
                np.lib.format.write_array(entry, values, allow_pickle=False)


def write_json(path: Path, data: dict[str, Any] | list) -> None:
    """Write plain JSON, one line for each entry of a list at the top or below it."""
    if isinstance(data, dict):
        lines = [f'{_dumps(key)}: {_lines(value)}' for key, value in data.items()]
        text = '{\n' + ',\n'.join(lines) + '\n}'
    else:
        text = _lines(data)
    write_atomically(path, f'{text}\n'.encode())


def _lines(value: Any) -> str:
    """A list of records with one line for each."""
    if not isinstance(value, list) or not value or isinstance(value[0], str):
        return _dumps(value)
    return '[\n' + ',\n'.join(map(_dumps, value)) + '\n]'


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def finite_or_none(values: np.ndarray) -> Any:
    """Nested lists of numbers, with None for those that are not finite."""
    return _finite_or_none(np.asarray(values, float).tolist())


def _finite_or_none(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite_or_none(item) for item in value]
    return value if math.isfinite(value) else None
