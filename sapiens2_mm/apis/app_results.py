"""What the web page shows and offers of the pictures that it gets."""

import warnings
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from sapiens2_mm.datasets.io.image import decode_image
from sapiens2_mm.visualization import save_point_cloud

from .inference import Inferencer
from .inputs import Picture
from .results import DenseResult, Result, SegResult
from .writers import writer_class

_VIEW_SIDE = 1280  # pixels; more makes the page slow and shows nothing new
_CLOUD_SIDE = 480
_SAVE = ('json', 'png', 'npz', 'ply')


def read_upload(path: str, max_pixels: int) -> tuple[Picture, list[str]]:
    """Decode a file that a user sent.

    Args:
        path: of the file.
        max_pixels: of a picture; what the file declares is looked at first.

    Returns:
        The picture, its ``path`` the bare name, and what should be said about it.

    Raises:
        ValueError: see ``decode_image``; if it has more pixels.
    """
    name = Path(path).name

    def check(size: tuple[int, int]) -> int:
        if size[0] * size[1] > max_pixels:
            raise ValueError(
                f'{name} has (height, width) {size}, more than the '
                f'{max_pixels / 1e6:g} megapixels of this page; make it smaller'
            )
        return 1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        image = decode_image(Path(path).read_bytes(), name, check)
    notes = [str(warning.message) for warning in caught]
    return Picture(image, name), [note for note in notes if name in note]


def write_results(
    inferencer: Inferencer, result: Result, name: str, folder: Path
) -> list[str]:
    """Write the files of a picture, those of ``tools/demo.py``.

    Args:
        inferencer: that made the result.
        result: of a picture with a ``path``.
        name: of the inferencer; file names hold it and that of the picture.
        folder: exists.

    Returns:
        The paths of the files.
    """
    stem = f'{Path(result.picture.path).stem}_{name}'
    writer = writer_class(inferencer)(inferencer, folder, _SAVE)
    writer.add(writer.write(result, stem))
    writer.finish()
    (folder / 'predictions.json').rename(folder / f'{stem}.json')
    return [str(folder / (stem + end)) for end in (*writer.file_ends, '.json')]


def photo_and_drawing(
    inferencer: Inferencer, result: Result
) -> tuple[np.ndarray, np.ndarray]:
    """The picture and what was found, both of one size, (h, w, 3) uint8 RGB."""
    width = result.picture.size[1]
    drawing = inferencer.draw(result)
    if isinstance(result, DenseResult):  # drawn right of the picture, not over it
        drawing = drawing[:, width:]
    photo = result.picture.image[..., ::-1]
    return fit(photo), fit(drawing[:, :width])


def fit(image: np.ndarray, side: int = _VIEW_SIDE, nearest: bool = False) -> np.ndarray:
    """Make an array (H, W, ...) smaller if its longer side is over ``side``."""
    height, width = image.shape[:2]
    scale = side / max(height, width)
    if scale >= 1:
        return np.ascontiguousarray(image)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    how = cv2.INTER_NEAREST if nearest else cv2.INTER_AREA
    return cv2.resize(np.ascontiguousarray(image), size, interpolation=how)


def part_masks(
    result: SegResult, classes: list[str], alpha: float = 0.6
) -> tuple[np.ndarray, list[tuple[np.ndarray, str]]]:
    """The picture, and the (h, w) mask of ``alpha`` and the name of each part found."""
    labels = fit(result.labels.astype(np.uint16), nearest=True)
    photo = fit(result.picture.image[..., ::-1])
    found = [number for number in np.unique(labels) if number != 0]
    return photo, [((labels == i) * alpha, readable(classes[i])) for i in found]


def readable(name: str) -> str:
    """The name of a class as text."""
    return name.replace('_', ' ')


def hex_colors(meta: Mapping[str, Any]) -> dict[str, str]:
    """Readable name of each class -> ``'#rrggbb'``."""
    colors = ('#{:02x}{:02x}{:02x}'.format(*color) for color in meta['palette'])
    return dict(zip(map(readable, meta['classes']), colors, strict=True))


def legend(meta: Mapping[str, Any], labels: np.ndarray) -> str:
    """HTML: color and name of all classes, and the share of pixels of those found."""
    counts = np.bincount(labels.ravel(), minlength=len(meta['classes']))
    entries = []
    for (name, color), share in zip(
        hex_colors(meta).items(), counts / labels.size, strict=True
    ):
        state, text = ('found', f' {share:.1%}') if share else ('absent', '')
        entries.append(
            f'<li class="{state}"><i style="background:{color}"></i>'
            f'{escape(name)}<b>{text}</b></li>'
        )
    return f'<ul class="legend">{"".join(entries)}</ul>'


def write_cloud_view(result: DenseResult, path: Path) -> str:
    """Write the pointmap for a viewer whose Y points up and Z to the viewer.

    Args:
        result: with a ``pointmap``.
        path: of the PLY file. Its points are fewer than the pixels, and without the
            nearest and the farthest hundredth, which would make the rest small.
    """
    points = fit(np.moveaxis(result.maps['pointmap'], 0, -1), _CLOUD_SIDE, True)
    colors = fit(result.picture.image[..., ::-1], _CLOUD_SIDE)
    x, y, z = np.moveaxis(points, -1, 0)
    low, high = np.nanpercentile(z, (1, 99))
    save_point_cloud(path, np.stack([x, -y, -z]), colors, mask=(z >= low) & (z <= high))
    return str(path)
