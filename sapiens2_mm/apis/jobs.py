"""From the arguments of a call to one job per picture."""

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

from mmengine.logging import print_log

from .boxes import BOX_FORMATS, BoxFile, People, check_boxes, one_person
from .inputs import (
    Failure,
    Picture,
    PictureLike,
    is_one_picture,
    is_video,
    iter_pictures,
    read_picture,
)
from .person_detectors import MoveNetDetector
from .tasks import Job
from .video.reader import Frame, read_video


def make_jobs(
    inputs: Any,
    *,
    needs_boxes: bool,
    boxes: Any = None,
    box_format: str = 'xyxy',
    whole_image: bool = False,
    masks: Any = None,
    channel_order: str = 'bgr',
    skip_errors: bool = False,
) -> Iterator[Job | Failure]:
    """Jobs of the pictures, read when they are asked for.

    Args:
        inputs: see ``Inferencer``, as all that follows.
        needs_boxes: of a pose model.
        boxes: of the people; without them a detector finds the people.
        box_format: of given boxes.
        whole_image: take each picture as one person.
        masks: one per picture.
        channel_order: of arrays.
        skip_errors: a ``Failure`` in place of a picture that cannot be read.

    Raises:
        ImportError: if that detector is needed and cannot run.
        ValueError: for arguments that do not fit.
    """
    if channel_order not in ('bgr', 'rgb'):
        raise ValueError(f"channel_order must be 'bgr' or 'rgb', got {channel_order!r}")
    if box_format not in BOX_FORMATS:
        raise ValueError(f'box_format must be "xyxy" or "xywh", got {box_format!r}')
    if boxes is not None and whole_image:
        raise ValueError(
            'give either boxes, or whole_image=True if each picture shows one person'
        )
    if boxes is not None and not needs_boxes:
        raise ValueError('boxes are for pose models; this one sees whole pictures')
    if needs_boxes and boxes is None and not whole_image:
        boxes = MoveNetDetector()
        print_log(f'no boxes were given: {boxes.name} finds the people', 'current')
    one = is_one_picture(inputs)
    sources: Iterable[PictureLike] = iter_pictures(inputs)
    given = boxes is not None and not callable(boxes)
    if given or masks is not None:
        sources = list(sources)
    find = _people_finder(sources, boxes, box_format, needs_boxes, one)
    masks = (
        repeat(None) if masks is None else _per_picture(masks, sources, 'masks', one)
    )
    return _jobs(sources, masks, find, channel_order, skip_errors)


def _jobs(
    sources: Iterable[PictureLike],
    masks: Iterable,
    find: Callable[[int, Picture], People | None],
    channel_order: str,
    skip_errors: bool,
) -> Iterator[Job | Failure]:
    pictures = _pictures(sources, channel_order, skip_errors)
    for number, (picture, mask) in enumerate(zip(pictures, masks, strict=False)):
        if isinstance(picture, Failure):
            yield picture
            continue
        try:
            job = Job(picture, find(number, picture), mask)
        except (OSError, ValueError) as err:
            if not skip_errors:
                raise
            yield Failure(picture.path or f'input {number}', str(err))
        else:
            yield job


def _pictures(
    sources: Iterable[PictureLike], channel_order: str, skip_errors: bool
) -> Iterator[Picture | Failure]:
    """Pictures, and the frames of videos."""
    for number, source in enumerate(sources):
        try:
            if is_video(source):
                yield from read_video(source)
            else:
                yield read_picture(source, channel_order)
        except (OSError, ValueError) as err:
            if not skip_errors:
                raise
            named = isinstance(source, str | Path)
            yield Failure(str(source) if named else f'input {number}', str(err))


def _per_picture(values: Any, sources: list, name: str, one: bool) -> list:
    if any(is_video(source) for source in sources):
        if name == 'masks':
            raise ValueError('masks are for pictures, not for videos')
        return list(values)  # frames are counted when they are read
    values = [values] if one else list(values)
    if len(values) != len(sources):
        raise ValueError(
            f'got {len(sources)} pictures and {len(values)} {name}; '
            'give one per picture'
        )
    return values


def _people_finder(
    sources: Iterable[PictureLike],
    boxes: Any,
    box_format: str,
    needs_boxes: bool,
    one: bool,
) -> Callable[[int, Picture], People | None]:
    """(number, picture) -> its people."""
    if not needs_boxes:
        return lambda number, picture: None
    if boxes is None:
        return lambda number, picture: one_person(picture.size)
    if callable(boxes):
        function = getattr(boxes, '__name__', type(boxes).__name__)
        name = getattr(boxes, 'name', function)
        return lambda number, picture: check_boxes(
            boxes(picture.image), 'xyxy', picture.size, str(picture.path), name
        )
    if not isinstance(boxes, str | Path):
        per_picture = _per_picture(boxes, sources, 'lists of boxes', one)

        def given(number: int, picture: Picture) -> People:
            where = f'picture {number} ({picture.path})'
            if number >= len(per_picture):
                raise ValueError(
                    f'{where} has no boxes, {len(per_picture)} lists were given; give '
                    'one per frame'
                )
            return check_boxes(per_picture[number], box_format, picture.size, where)

        return given
    file = BoxFile.read(boxes)
    matched = file.match(str(s) for s in sources if isinstance(s, str | Path))

    def find(number: int, picture: Picture) -> People:
        name = matched.get(str(picture.path))
        if isinstance(picture, Frame):
            image_id, known = file.of_frame(name, picture.index)
        else:
            image_id, known = file.boxes[name] if name else (None, [])
        where = f'{file.path}: {picture.path}'
        return check_boxes(known, 'xywh', picture.size, where, file.path, image_id)

    return find
