"""Predictions of pictures, written to a folder."""

import logging
import time
from collections import deque
from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mmengine.logging import print_log
from tqdm import tqdm

from .inference import Inferencer, infer
from .inputs import Failure, is_video, iter_pictures
from .jobs import make_jobs
from .out_files import FreeNames
from .results import PoseResult, Result
from .video.clips import CLIP_KINDS, ClipWriters
from .video.people import follow_people
from .video.reader import Frame
from .writers import SAVE_KINDS, Writer, writer_class

_NUM_WRITING = 2  # threads; with one, the files of a tiny model take longer than it


@dataclass
class Summary:
    """What became of the inputs.

    Args:
        done: pictures and frames with results.
        failures: picture or video -> why it has none, or not for all frames.
        left_out: entries of an input folder that are no pictures.
        people: that the poses are of.
        nobody: pictures for pose without a person.
    """

    done: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    people: int = 0
    nobody: list[str] = field(default_factory=list)

    def count_people(self, path: str, results: list[Result]) -> None:
        for result in results:
            if isinstance(result, PoseResult):  # all have the same people
                self.people += len(result.boxes)
                if not len(result.boxes) and not isinstance(result.picture, Frame):
                    self.nobody.append(path)
                return


def predict_to_folder(
    inferencers: Mapping[str, Inferencer],
    inputs: Any,
    out_dir: str | Path,
    *,
    save: Collection[str] = ('json', 'png', 'npz'),
    boxes: Any = None,
    whole_image: bool = False,
    batch_size: int = 1,
    keypoint_thr: float = 0.3,
    keypoints: str | None = None,
    track: bool | None = None,
    smooth: bool = False,
) -> Summary:
    """Predict pictures and videos with one or several models and write the results.

    Each model has a folder of its name in ``out_dir``, with the files of its ``Writer``
    for each picture and ``predictions.json``: one record per picture, the failures and
    what was left out; numbers that are not finite are null. Files are named after the
    picture, with a number if that name is taken by an input or another output. Each
    file appears complete or not at all, and ``predictions.json`` also when the run is
    interrupted.

    A video gets ``NAME.mp4``, drawn and with its times and sound, for ``'png'`` and
    ``NAME.jsonl``, a record per frame, for ``'json'``; other files would be too many.
    When the user interrupts, they hold the frames so far.

    Args:
        inferencers: name -> inferencer; each picture is read once.
        inputs: see ``iter_pictures``.
        out_dir: is made if needed.
        save: what to write, of ``SAVE_KINDS``: ``'png'`` a drawing (and the label
            image), ``'npz'`` the arrays, ``'ply'`` the points of a pointmap,
            ``'coco'`` the keypoints as a list of results.
        boxes: for pose, see ``Inferencer``. A picture without a person has results
            that are empty, and is counted in the summary.
        whole_image: see ``Inferencer``.
        batch_size: see ``Inferencer``.
        keypoint_thr: keypoints of a lower score are not drawn.
        keypoints: for pose, the set to convert to, see ``convert_keypoints``.
        track: see ``Inferencer``.
        smooth: see ``Inferencer``.

    Raises:
        FileNotFoundError: if there are no pictures.
        ImportError: if ``'ply'`` is asked for and plyfile is not installed; if the
            default detector is needed and cannot run.
        ValueError: for arguments that do not fit; before the first picture.
    """
    out_dir = Path(out_dir)
    has_pose = any(i.task.name == 'pose' for i in inferencers.values())
    if keypoints is not None and not has_pose:
        raise ValueError(f'keypoints={keypoints!r} needs a pose model')
    writers = {
        name: writer_class(inferencer)(
            inferencer,
            out_dir / name,
            save,
            **(dict(keypoints=keypoints) if inferencer.task.name == 'pose' else {}),
        )
        for name, inferencer in inferencers.items()
    }
    sources = list(iter_pictures(inputs))
    has_video = any(is_video(source) for source in sources)
    _check_kinds(save, writers, has_video)
    jobs = make_jobs(
        sources,
        needs_boxes=has_pose,
        boxes=boxes,
        whole_image=whole_image,
        skip_errors=True,
    )
    found = infer(list(inferencers.values()), jobs, batch_size, skip_errors=True)
    if track is None:
        track = smooth or not whole_image
    found = follow_people(found, track, smooth)
    files = [path for path in (*sources, boxes) if isinstance(path, str | Path)]
    names = FreeNames(files)
    for writer in writers.values():
        writer.folder.mkdir(parents=True, exist_ok=True)
        for file in ('predictions.json', 'coco.json', 'coco_categories.json'):
            names.claim(writer.folder / file)
    summary = Summary(left_out=_left_out(inputs, sources))
    start = time.perf_counter()
    draw = {
        name: dict(kpt_thr=keypoint_thr) if 'coco' in writer.kinds else {}
        for name, writer in writers.items()
    }
    clips = ClipWriters(writers, names, summary.failures, draw)

    def write(results: list[Result], name: str) -> list[dict[str, Any]]:
        return [
            writers[key].write(result, name, **draw[key])
            for key, result in zip(writers, results, strict=True)
        ]

    writing: deque[Future] = deque()
    ahead = 0 if has_video else _NUM_WRITING  # frames go to a file in their order

    def keep(future: Future) -> None:
        for writer, record in zip(writers.values(), future.result(), strict=False):
            writer.add(record)
        summary.done += 1

    try:
        with clips, ThreadPoolExecutor(_NUM_WRITING) as threads:
            total = None if has_video else len(sources)
            for number, item in enumerate(
                tqdm(found, total=total, unit='picture', disable=None)
            ):
                if isinstance(item, Failure):
                    summary.failures[item.path] = item.reason
                    continue
                path = item[0].picture.path or f'input_{number}'
                summary.count_people(path, item)
                while len(writing) > ahead:
                    keep(writing.popleft())
                if isinstance(item[0].picture, Frame):
                    writing.append(threads.submit(clips.write, item))
                else:
                    name = names.take(
                        Path(path).stem,
                        [writer.folder for writer in writers.values()],
                        {end for w in writers.values() for end in w.file_ends},
                    )
                    writing.append(threads.submit(write, item, name))
            while writing:
                keep(writing.popleft())
            clips.finish()
    finally:
        for future in writing:  # after an error or Ctrl-C, what was still written
            if future.exception() is None:
                keep(future)
        for writer in writers.values():
            writer.finish(failures=summary.failures, left_out=summary.left_out)
        what = 'pictures and frames' if has_video else 'pictures'
        _report(summary, what, out_dir, time.perf_counter() - start)
    return summary


def _check_kinds(
    save: Collection[str], writers: Mapping[str, Writer], has_video: bool
) -> None:
    possible = {kind for writer in writers.values() for kind in writer.kinds}
    if wrong := sorted({*save} - possible):
        raise ValueError(
            f'cannot save {wrong}: {[*writers]} can save {sorted(possible)}, and of '
            f'{list(SAVE_KINDS)} ply needs a pointmap model, coco a pose model'
        )
    if has_video and not {*save} & {*CLIP_KINDS}:
        raise ValueError(
            f'of a video {list(CLIP_KINDS)} can be saved, an mp4 and JSON lines; got '
            f'{[*save]}'
        )
    if 'ply' in save and find_spec('plyfile') is None:
        raise ImportError('ply needs plyfile; install sapiens2_mm[demo]')


def _left_out(inputs: Any, sources: list) -> list[str]:
    if not isinstance(inputs, str | Path) or not Path(inputs).is_dir():
        return []
    taken = {Path(source).name for source in sources}
    return sorted(p.name for p in Path(inputs).iterdir() if p.name not in taken)


def _report(summary: Summary, what: str, out_dir: Path, seconds: float) -> None:
    for path, reason in summary.failures.items():
        print_log(f'no result: {path}: {reason}', 'current', logging.ERROR)
    text = f'{summary.done} {what} in {seconds:.1f} s'
    text += f' ({summary.done / seconds:.2f} pictures/s) -> {out_dir}'
    if summary.people or summary.nobody:
        text += f'; {summary.people} people'
    if summary.nobody:
        text += f'; nobody in {len(summary.nobody)}, such as {summary.nobody[:3]}'
    if summary.failures:
        text += f'; {len(summary.failures)} without a result, named above'
    if summary.left_out:
        text += f'; {len(summary.left_out)} other entries of the folder left out, such '
        text += f'as {summary.left_out[:3]}'
    print_log(text, 'current')
