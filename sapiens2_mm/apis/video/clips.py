"""Files of the results of videos, beside those of pictures."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from sapiens2_mm.checkpoint.io.atomic import replacing

from ..out_files import FreeNames
from ..results import Result
from ..writers import Writer
from .reader import Frame
from .writer import VideoWriter

_ENDS = dict(png='.mp4', json='.jsonl')
CLIP_KINDS = tuple(_ENDS)


class ClipWriters:
    """Writes ``NAME.mp4`` and ``NAME.jsonl`` of each video for each model.

    A video is finished when the next one begins, by ``finish`` at the end, and when the
    user interrupts the block: its files then hold the frames so far. After any other
    error it has none.

    Args:
        writers: of the models, in the order of the results.
        names: of all files.
        failures: gets the videos whose frames are not all there.
        draw: goes to ``Inferencer.draw``, for each model.
    """

    def __init__(
        self,
        writers: Mapping[str, Writer],
        names: FreeNames,
        failures: dict[str, str],
        draw: Mapping[str, dict[str, Any]],
    ) -> None:
        self._writers = writers
        self._names = names
        self._failures = failures
        self._draw = draw
        self._clips: list[_Clip] = []
        self._files = ExitStack()
        self._last: Frame | None = None

    def write(self, results: list[Result]) -> list[dict[str, Any]]:
        """Append the next frame of a video, or the first of the next one.

        Returns:
            No records of pictures.
        """
        frame = results[0].picture
        if self._last is None or self._last.video is not frame.video:
            self.finish()
            name = self._names.take(
                Path(frame.video.path).stem,
                [writer.folder for writer in self._writers.values()],
                _ENDS.values(),
            )
            self._clips = [
                _Clip(writer, name, frame, self._draw[key], self._files)
                for key, writer in self._writers.items()
            ]
        self._last = frame
        for clip, result in zip(self._clips, results, strict=True):
            clip.write(result)
        return []

    def finish(self, whole: bool = True) -> None:
        """Complete the files of the last video; ``whole`` if all its frames came."""
        if self._last is not None and self._last.video.damage:
            self._failures[self._last.video.path] = self._last.video.damage
        for clip in self._clips:
            clip.close(whole)
        self._files.close()
        self._clips, self._last = [], None

    def __enter__(self) -> 'ClipWriters':
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, KeyboardInterrupt):
            self.finish(whole=False)
        self._files.__exit__(kind, error, trace)


class _Clip:
    """The files of one video and one model."""

    def __init__(
        self,
        writer: Writer,
        name: str,
        frame: Frame,
        draw: dict[str, Any],
        files: ExitStack,
    ) -> None:
        self._writer = writer
        self._draw = draw | writer.draw_frames
        self._lines = self._pictures = None
        ends = [end for kind, end in _ENDS.items() if kind in writer.save]
        self._record: dict[str, Any] = dict(
            video=frame.video.path, frames=0, files=[name + end for end in ends]
        )
        if 'json' in writer.save:
            path = files.enter_context(replacing(writer.folder / f'{name}.jsonl'))
            self._lines = files.enter_context(path.open('w', encoding='utf-8'))
        if 'png' in writer.save:
            path = files.enter_context(replacing(writer.folder / f'{name}.mp4'))
            self._pictures = VideoWriter(path, frame.video)

    def write(self, result: Result) -> None:
        frame, result = result.picture, self._writer.prepared(result)
        self._record['frames'] += 1
        if self._lines is not None:
            line = dict(frame=frame.index, time=frame.time)
            line |= self._writer.record(result)
            self._lines.write(json.dumps(line, ensure_ascii=False, allow_nan=False))
            self._lines.write('\n')
        if self._pictures is not None:
            drawn = self._writer.inferencer.draw(result, **self._draw)
            self._pictures.write(drawn, frame)

    def close(self, whole: bool) -> None:
        if self._pictures is not None:
            self._pictures.close(whole)
        self._writer.videos.append(self._record)
