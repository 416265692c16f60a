"""Boxes of people: from a caller, a file or a detector."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.logging import print_log

from sapiens2_mm.datasets.io.json_file import Id, check_record, check_records, load_json

BOX_FORMATS = ('xyxy', 'xywh')
# (H, W, 3) uint8 BGR -> (N, 4) xyxy in pixels, or (N, 5) with the score
Detector = Callable[[np.ndarray], np.ndarray]
# image id, (N, 4) xywh
Boxes = tuple[Id | None, list[list[float]]]


@dataclass(frozen=True)
class People:
    """The people of one picture.

    Args:
        boxes: (N, 4) float32 xyxy in pixels.
        scores: (N,) float32 of the boxes; 1 for a box that is sure.
        source: where they came from, for the result.
        skipped: boxes that were left out, and why.
        image_id: of the picture in the file of boxes.
    """

    boxes: np.ndarray
    scores: np.ndarray
    source: str
    skipped: tuple[str, ...] = ()
    image_id: Id | None = None


def one_person(size: tuple[int, int]) -> People:
    """The whole picture of (height, width) as one person."""
    box = np.float32([[0, 0, size[1], size[0]]])
    return People(box, np.ones(1, np.float32), 'whole image')


def check_boxes(
    boxes: np.ndarray | Sequence[Sequence[float]],
    box_format: str,
    size: tuple[int, int],
    where: str,
    source: str = 'given',
    image_id: Id | None = None,
) -> People:
    """Bring boxes to xyxy; those that cannot be meant are left out and named.

    Args:
        boxes: (N, 4) in pixels, or (N, 5) with a score last.
        box_format: ``'xyxy'`` (left, top, right, bottom) or ``'xywh'`` (left, top,
            width, height).
        size: (height, width) of the picture.
        where: names the picture in messages.
        source: see ``People``.
        image_id: see ``People``.

    Raises:
        ValueError: for another format, or boxes that are not such numbers.
    """
    if box_format not in BOX_FORMATS:
        raise ValueError(f'box_format must be "xyxy" or "xywh", got {box_format!r}')
    try:
        rows = np.array(boxes, np.float32)
        if rows.size == 4 * len(boxes):
            rows = np.insert(rows.reshape(-1, 4), 4, 1, axis=1)
        given, scores = np.split(rows.reshape(len(boxes), 5), [4], axis=1)
    except (TypeError, ValueError) as err:
        raise ValueError(
            f'{where}: boxes must be (N, 4) numbers, or (N, 5) with a score last, got '
            f'{boxes!r:.80}'
        ) from err
    corners = given.copy()
    if box_format == 'xywh':
        corners[:, 2:] += corners[:, :2]
    faults = [_fault(*pair, size) for pair in zip(given, corners, strict=True)]
    skipped = tuple(
        f'box {number} = {box.tolist()} ({box_format}) {fault}'
        for number, (box, fault) in enumerate(zip(given, faults, strict=True))
        if fault
    )
    for message in skipped:
        print_log(
            f'{where}: left out {message}', logger='current', level=logging.WARNING
        )
    kept = [number for number, fault in enumerate(faults) if not fault]
    return People(corners[kept], scores[kept, 0], source, skipped, image_id)


def _fault(given: np.ndarray, box: np.ndarray, size: tuple[int, int]) -> str:
    if not np.isfinite(box).all():
        return 'is not finite'
    if (given <= 1).all():
        return 'looks normalized to 0..1; multiply it by the width and height'
    if (box[2:] <= box[:2]).any():
        return 'has no positive width and height; check box_format'
    if (box[2:] <= 0).any() or (box[:2] >= size[::-1]).any():
        return f'lies outside the picture of (height, width) {tuple(size)}'
    return ''


@dataclass(frozen=True)
class BoxFile:
    """A COCO-style JSON with the boxes (xywh) of pictures; crowds are left out.

    An entry of ``images`` with a ``frame_id``, from 0, is that frame of the video
    ``file_name``. A frame without an entry has no people.

    Args:
        path: of the file.
        boxes: ``file_name`` of a picture -> image id and its boxes.
        frames: ``file_name`` of a video -> frame -> the same.
    """

    path: str
    boxes: dict[str, Boxes]
    frames: dict[str, dict[int, Boxes]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path) -> 'BoxFile':
        """Read a file.

        Raises:
            OSError: if there is no such file.
            ValueError: if it is not in COCO's form; names the entry.
        """
        data = load_json(str(path))
        check_record(data, dict(images=list, annotations=list), str(path))
        images, annotations = data['images'], data['annotations']
        check_records(images, dict(id=Id, file_name=str), f'{path}: image')
        check_records(annotations, dict(image_id=Id), f'{path}: annotation')
        boxes: dict[Id, list[list[float]]] = {image['id']: [] for image in images}
        places = [(str(Path(i['file_name'])), i.get('frame_id')) for i in images]
        if len(boxes) < len(images) or len(boxes) > len({*map(str, places)}):
            raise ValueError(
                f'{path}: two images have the same id or file_name (and frame_id)'
            )
        for number, annotation in enumerate(annotations):
            if annotation['image_id'] not in boxes:
                raise ValueError(
                    f'{path}: annotation {number}: image_id '
                    f'{annotation["image_id"]!r} is not an image of the file'
                )
            if not annotation.get('iscrowd', 0):
                boxes[annotation['image_id']].append(_as_box(annotation.get('bbox')))
        file = cls(str(path), {}, {})
        for (name, frame), image_id in zip(places, list(boxes), strict=True):
            if not isinstance(frame, int | None):
                raise ValueError(f'{path}: frame_id must be an integer, got {frame!r}')
            if frame is None:
                file.boxes[name] = image_id, boxes[image_id]
            else:
                file.frames.setdefault(name, {})[frame] = image_id, boxes[image_id]
        return file

    def of_frame(self, name: str | None, index: int) -> Boxes:
        """Boxes of a frame of the video with this ``file_name``.

        Raises:
            ValueError: if the file knows it as a picture.
        """
        if name in self.boxes:
            raise ValueError(f'{self.path}: images of {name} need a frame_id, from 0')
        return self.frames.get(name, {}).get(index, (None, []))

    def match(self, paths: Iterable[str]) -> dict[str, str]:
        """Path of a picture -> its ``file_name``.

        A picture belongs to the entry whose ``file_name`` is the end of its path,
        folder by folder: ``A/1.png`` never takes the boxes of ``B/1.png``. A warning
        counts pictures without an entry; they have no people.

        Raises:
            ValueError: if two entries fit one picture or two pictures fit one entry.
        """
        paths = list(dict.fromkeys(paths))
        by_end = {Path(name).parts: name for name in (*self.boxes, *self.frames)}
        matched: dict[str, str] = {}
        owners: dict[str, str] = {}  # the same the other way round
        for path in paths:
            parts = Path(path).absolute().parts
            ends = [parts[start:] for start in range(len(parts))]
            names = [by_end[end] for end in ends if end in by_end]
            others = [owners[name] for name in names if name in owners]
            if len(names) > 1 or others:
                raise ValueError(
                    f'{self.path}: it is not clear whose boxes are whose: the file '
                    f'names {names} fit the picture(s) {[*others, path]}; write longer '
                    'relative paths as file_name'
                )
            if names:
                matched[path], owners[names[0]] = names[0], path
        if lacking := [path for path in paths if path not in matched]:
            print_log(
                f'{self.path}: no entry for {len(lacking)} of {len(paths)} pictures, '
                f'such as {lacking[0]}; they have no people. Its file names look like '
                f'{next(iter(by_end.values()), None)!r}',
                logger='current',
                level=logging.WARNING,
            )
        return matched


def _as_box(box: Any) -> list[float]:
    """Four numbers; NaN, which ``check_boxes`` leaves out, for anything else."""
    numbers = isinstance(box, list) and len(box) == 4
    numbers = numbers and all(isinstance(value, int | float) for value in box)
    return box if numbers else [np.nan] * 4
