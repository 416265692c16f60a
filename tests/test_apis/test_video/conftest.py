"""Small videos, made by PyAV."""

from fractions import Fraction

import numpy as np
import pytest

SIZE = (48, 64)  # height, width
TIME_BASE = Fraction(1, 1000)
# Milliseconds of a variable frame rate.
PTS = (0, 40, 80, 200, 210, 400, 440, 480, 1000, 1040)


def picture(number, size=SIZE):
    """(H, W, 3) RGB: red, green below, blue on the right; a bright square moves."""
    height, width = size
    image = np.zeros((height, width, 3), np.uint8)
    image[: height // 2] = (200, 30, 30)
    image[height // 2 :] = (20, 160, 40)
    image[:, width // 2 :] = (30, 40, 200)
    left = 2 * number % (width - 8)
    image[20:28, left : left + 8] = 240
    return image


@pytest.fixture
def make_video(tmp_path):
    """Writes a video of ``picture`` at the times ``pts``, with a tone if asked."""

    av = pytest.importorskip('av')

    def make_video(
        name='clip.mp4',
        pts=PTS,
        size=SIZE,
        matrix=None,
        audio=None,
        codec='h264',
        time_base=TIME_BASE,
        aspect=None,
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with av.open(str(path), 'w', options=dict(movflags='faststart')) as file:
            stream = file.add_stream(codec, 25, dict(crf='10', g='5'))
            stream.height, stream.width = size
            stream.pix_fmt = 'yuv420p'
            stream.codec_context.time_base = time_base
            if aspect is not None:
                stream.codec_context.sample_aspect_ratio = aspect
            if matrix is not None:
                stream.set_display_matrix(matrix)
            if audio:
                sound = file.add_stream(audio, rate=16000, layout='mono')
            for number, ticks in enumerate(pts):
                frame = av.VideoFrame.from_ndarray(picture(number, size), 'rgb24')
                frame.pts, frame.time_base = ticks, time_base
                file.mux(stream.encode(frame))
            file.mux(stream.encode(None))
            if audio:
                count = int(pts[-1] * time_base * 16000)
                tone = (8000 * np.sin(np.arange(count) * 0.1)).astype(np.int16)
                frame = av.AudioFrame.from_ndarray(tone[None], 's16', 'mono')
                frame.sample_rate, frame.pts = 16000, 0
                file.mux(sound.encode(frame))
                file.mux(sound.encode(None))
        return path

    return make_video
