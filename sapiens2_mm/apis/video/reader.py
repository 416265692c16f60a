"""Frames of video files and cameras, one after the other."""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from mmengine.logging import print_log

from ..inputs import Picture

_CAMERA_CLOCK = Fraction(1, 1000)


@dataclass
class Video:
    """What is known of a video while it is read.

    Args:
        path: of the file, or ``camera_NUMBER``.
        rate: frames per second, on average.
        time_base: seconds per tick of ``Frame.pts``.
        start: seconds of the file's clock at time 0.
        audio: codec of its first audio stream; None without one.
        pixel_aspect: width of a pixel per height, as shown.
        damage: why frames are missing at the end or between; known after the last one.
    """

    path: str
    rate: float
    time_base: Fraction
    start: Fraction = Fraction(0)
    audio: str | None = None
    pixel_aspect: Fraction = Fraction(1)
    damage: str = ''


@dataclass(frozen=True, kw_only=True)
class Frame(Picture):
    """A decoded frame, turned as its video is shown.

    Args:
        video: it belongs to; ``path`` is that of the video.
        index: 0 for the first.
        pts: when it is shown, in ticks of ``video.time_base`` from the start; each
            frame is later than the one before.
        duration: for how many ticks; 0 if the file does not say.
    """

    video: Video
    index: int
    pts: int
    duration: int = 0

    @property
    def time(self) -> float:
        """Seconds from the start of the video."""
        return float(self.pts * self.video.time_base)


def read_video(source: str | Path | int) -> Iterator[Frame]:
    """Decode a video; one frame is held at a time.

    Time stamps are the file's, counted from its start as ffmpeg does; where one is
    missing or not later than the one before, it follows that by a frame's duration or
    a tick; they go on where the clock is set back by over a second, as in joined
    files. Frames are turned and mirrored by the file's display matrix. What cannot be
    decoded is left out, and a warning and ``Video.damage`` say so.

    Args:
        source: path or address of a file, or the number of a camera, whose frames come
            until the camera ends.

    Raises:
        ImportError: without PyAV.
        OSError: if there is no such file or camera.
        ValueError: if no frame can be decoded, or for a negative number.
    """
    frames = _camera(source) if isinstance(source, int) else _file(str(source))
    video = None
    for frame in frames:
        video = frame.video
        yield frame
    if video is None:
        raise ValueError(f'{source}: no frame could be decoded; is it a whole video?')
    if video.damage:
        print_log(f'{video.path}: {video.damage}', 'current', logging.WARNING)


def import_av() -> Any:
    """PyAV, which brings the libraries of ffmpeg.

    Raises:
        ImportError: if it is not installed.
    """
    try:
        import av
    except ImportError as err:
        raise ImportError('videos need PyAV; install sapiens2_mm[video]') from err
    return av


def _file(path: str) -> Iterator[Frame]:
    av = import_av()
    try:
        container = av.open(path, metadata_errors='replace')
    except av.InvalidDataError as err:
        raise ValueError(f'{path} cannot be read as a video: {err.strerror}') from err
    with container:
        stream = container.streams.best('video')  # not a cover picture
        if stream is None:
            raise ValueError(f'{path} has no video stream')
        stream.thread_type = 'AUTO'
        audio = container.streams.audio
        video = Video(
            path,
            float(stream.average_rate or stream.guessed_rate or 30),
            stream.time_base,
            Fraction(container.start_time or 0, av.time_base),
            audio[0].codec_context.codec.canonical_name if audio else None,
            stream.sample_aspect_ratio or Fraction(1),
        )
        start = round(video.start / video.time_base)
        second = round(1 / video.time_base)
        step = max(1, round(second / video.rate))
        last, lost = None, []
        for index, frame in enumerate(decode(container, stream, lost)):
            if index == 0 and frame.rotation % 180:
                video.pixel_aspect = 1 / video.pixel_aspect
            step = frame.duration or step
            next_one = 0 if last is None else last + step
            pts = next_one if frame.pts is None else frame.pts - start
            if last is not None and pts < last - second:  # the clock was set back
                start, pts = start + pts - next_one, next_one
            last = pts if last is None else max(pts, last + 1)
            image = _turned(frame.to_ndarray(format='bgr24'), frame)
            yield Frame(
                image,
                path,
                video=video,
                index=index,
                pts=last,
                duration=frame.duration or 0,
            )
        if last is not None:
            end = float((last + step) * video.time_base)
            video.damage = _damage(lost, index + 1, end, container.duration)


def decode(container: Any, stream: Any, lost: list[str]) -> Iterator[Any]:
    """Frames of what can be decoded; why the rest cannot goes to ``lost``."""
    av = import_av()
    packets = container.demux(stream)
    while True:
        try:
            yield from next(packets).decode()
        except StopIteration:
            return
        except av.InvalidDataError as err:
            lost.append(err.strerror)
        except av.FFmpegError as err:
            lost.append(err.strerror)
            return


def _damage(lost: list[str], done: int, end: float, duration: int | None) -> str:
    """What is missing, in words."""
    parts = []
    if lost:
        parts.append(f'{len(lost)} pieces could not be decoded ({lost[0]})')
    whole = (duration or 0) / 1e6
    if whole - end > max(1, 0.05 * whole):
        parts.append(f'it ends after {end:.2f} of {whole:.2f} s')
    return f'only {done} frames were decoded: ' + ', '.join(parts) if parts else ''


def _turned(image: np.ndarray, frame: Any) -> np.ndarray:
    """``image`` as the display matrix of the frame says, for right angles."""
    data = frame.side_data.get('DISPLAYMATRIX')
    if data is None:
        return image
    # (x, y) is shown at (a x + c y, b x + d y) plus a shift
    (a, b), (c, d) = np.frombuffer(data, np.int32).reshape(3, 3)[:2, :2].tolist()
    if abs(b) > abs(a):
        image, a, d = image.swapaxes(0, 1), c, b
    image = image[:: -1 if d < 0 else 1, :: -1 if a < 0 else 1]
    return np.ascontiguousarray(image)


def _camera(number: int) -> Iterator[Frame]:
    if number < 0:  # OpenCV takes any camera, and crashes if there is none
        raise ValueError(f'cameras are numbered from 0, got {number}')
    device = cv2.VideoCapture(number)
    try:
        if not device.isOpened():
            raise OSError(f'camera {number} cannot be opened; is it free and allowed?')
        rate = device.get(cv2.CAP_PROP_FPS)
        video = Video(f'camera_{number}', rate if rate > 0 else 30.0, _CAMERA_CLOCK)
        start, last = time.monotonic(), -1
        for index in count():
            read, image = device.read()
            if not read:
                return
            now = Fraction(time.monotonic() - start)
            last = max(round(now / _CAMERA_CLOCK), last + 1)
            yield Frame(image, video.path, video=video, index=index, pts=last)
    finally:
        device.release()
