"""Video files with the time stamps and the sound of others."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from mmengine.logging import print_log

from .reader import Frame, Video, decode, import_av

_BT709 = 1  # of H.273, for the matrix, the primaries and the transfer function
_VIDEO_RANGE = 1
# Of sound that mp4 players know; other sound is encoded as AAC.
_MP4_SOUND = {'aac', 'mp3', 'ac3', 'eac3', 'opus', 'flac', 'alac'}


class VideoWriter:
    """Writes an mp4 (H.264) whose frames have the times of another video's.

    Frames go to the file one by one, with the sound of the source up to their time. It
    is copied; a kind that players of mp4 do not know is encoded as AAC.

    Args:
        path: of the file; any name.
        video: the source.
    """

    def __init__(self, path: Path, video: Video) -> None:
        self._av = import_av()
        self._video = video
        self._size: tuple[int, int] | None = None
        self._file = self._av.open(str(path), 'w', 'mp4')
        options = dict(preset='veryfast', crf='20')
        stream = self._file.add_stream('h264', round(video.rate), options)
        context = stream.codec_context
        context.time_base = video.time_base
        context.colorspace = context.color_primaries = context.color_trc = _BT709
        context.color_range = _VIDEO_RANGE
        context.sample_aspect_ratio = video.pixel_aspect
        stream.pix_fmt = 'yuv420p'
        self._stream = stream
        self._sound = _Sound(self._file, video) if video.audio else None

    def write(self, image: np.ndarray, frame: Frame) -> None:
        """Append a picture at the time of a frame.

        Args:
            image: (H, W, 3) uint8 RGB. The first one sets the size; an odd height or
                width grows by a pixel, which H.264 needs; later ones are resized.
            frame: of the source.
        """
        if self._size is None:
            height, width = image.shape[:2]
            self._size = width, height
            self._stream.width, self._stream.height = (
                width + width % 2,
                height + height % 2,
            )
        width, height = self._size
        if image.shape[:2] != (height, width):
            image = cv2.resize(image, self._size, interpolation=cv2.INTER_AREA)
        image = cv2.copyMakeBorder(
            image, 0, height % 2, 0, width % 2, cv2.BORDER_REPLICATE
        )
        picture = self._av.VideoFrame.from_ndarray(image, format='rgb24')
        picture = picture.reformat(
            format='yuv420p', dst_colorspace='ITU709', dst_color_range='MPEG'
        )
        picture.pts, picture.time_base = frame.pts, self._video.time_base
        picture.duration = frame.duration
        self._file.mux(self._stream.encode(picture))
        if self._sound is not None:
            self._sound.copy(frame.time)

    def close(self, with_sound: bool = True) -> None:
        """Finish the file.

        Args:
            with_sound: append the sound that lasts longer than the frames.
        """
        self._file.mux(self._stream.encode(None))
        if self._sound is not None:
            self._sound.close(with_sound)
        self._file.close()


class _Sound:
    """The first audio stream of a video, in another file."""

    def __init__(self, file: Any, video: Video) -> None:
        self._av = import_av()
        self._file = file
        self._source = self._av.open(video.path, metadata_errors='replace')
        stream = self._source.streams.audio[0]
        self._is_copied = video.audio in _MP4_SOUND
        if self._is_copied:
            self._stream = file.add_stream_from_template(stream)
        else:
            self._stream = file.add_stream('aac', rate=48000)
            self._stream.layout = 'mono' if stream.channels == 1 else 'stereo'
        self._start = video.start
        self._packets = self._read(stream)
        self._next = next(self._packets, None)

    def copy(self, until: float) -> None:
        """Append what is heard before a time, in seconds from the start."""
        while self._next is not None and self._time_of(self._next) < until:
            self._append(self._next)
            self._next = next(self._packets, None)

    def close(self, to_the_end: bool) -> None:
        if to_the_end:
            self.copy(float('inf'))
        if not self._is_copied:
            self._file.mux(self._stream.encode(None))
        self._source.close()

    @staticmethod
    def _time_of(item: Any) -> float:
        return float(item.pts * item.time_base)

    def _read(self, stream: Any) -> Iterator[Any]:
        """Packets to copy, or frames to encode; from time 0 of the video, ascending."""
        lost: list[str] = []
        if self._is_copied:
            items = self._source.demux(stream)
        else:
            items = decode(self._source, stream, lost)
        last = float('-inf')
        try:
            for item in items:
                # packets are in the order of their decoding times
                order = item.dts if self._is_copied else item.pts
                if item.pts is None or order is None or order <= last:
                    continue
                last = order
                start = round(self._start / item.time_base)
                item.pts -= start
                if self._is_copied:
                    item.dts -= start
                yield item
        except self._av.FFmpegError as err:
            lost.append(err.strerror)
        if lost:
            text = f'{self._source.name}: {len(lost)} pieces of the sound are lost'
            print_log(f'{text} ({lost[0]})', 'current', logging.WARNING)

    def _append(self, item: Any) -> None:
        if self._is_copied:
            item.stream = self._stream
            self._file.mux(item)
        else:
            self._file.mux(self._stream.encode(item))
