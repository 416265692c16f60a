import sys
import weakref
from fractions import Fraction

import cv2
import numpy as np
import pytest

from sapiens2_mm.apis.inputs import is_video
from sapiens2_mm.apis.video import read_video
from sapiens2_mm.apis.video.reader import import_av

PTS = (0, 40, 80, 200, 210, 400, 440, 480, 1000, 1040)
ONE = 1 << 16
# (a, b, c, d) of the display matrix -> how the picture is shown
TURNS = {
    (1, 0, 0, 1): lambda image: image,
    (0, 1, -1, 0): lambda image: np.rot90(image, -1),
    (-1, 0, 0, -1): lambda image: np.rot90(image, 2),
    (0, -1, 1, 0): np.rot90,
    (-1, 0, 0, 1): lambda image: image[:, ::-1],
    (1, 0, 0, -1): lambda image: image[::-1],
    (0, 1, 1, 0): lambda image: image.swapaxes(0, 1),
}


def test_frames_have_the_pictures_and_times_of_the_file(make_video):
    path = make_video()
    frames = list(read_video(path))
    assert [frame.index for frame in frames] == list(range(10))
    np.testing.assert_allclose([f.time for f in frames], np.array(PTS) / 1000)
    video = frames[0].video
    assert all(frame.video is video for frame in frames)
    assert (video.path, video.audio, video.damage) == (str(path), None, '')
    assert {frame.path for frame in frames} == {str(path)}
    image = frames[0].image
    assert image.shape == (48, 64, 3) and image.dtype == np.uint8
    for place, color in {(8, 8): (200, 30, 30), (40, 8): (20, 160, 40)}.items():
        np.testing.assert_allclose(image[place][::-1], color, atol=8)
    bright = [np.where(frame.image[24].min(axis=1) > 150)[0] for frame in frames]
    np.testing.assert_allclose([x.mean() for x in bright], 3.5 + 2 * np.arange(10))


@pytest.mark.parametrize('numbers', TURNS)
def test_display_matrix(make_video, numbers):
    a, b, c, d = (ONE * number for number in numbers)
    (plain, *_) = read_video(make_video('plain.mp4', PTS[:1]))
    path = make_video(pts=PTS[:1], matrix=[a, b, 0, c, d, 0, 0, 0, 1 << 30])
    (turned,) = read_video(path)
    assert np.array_equal(turned.image, TURNS[numbers](plain.image))
    assert turned.image.flags.c_contiguous


def test_times_start_with_the_file(make_video):
    """A transport stream begins at any time of its clock."""
    path = make_video(
        'clip.ts', [90_000 + 90 * t for t in PTS], time_base=Fraction(1, 90_000)
    )
    frames = list(read_video(path))
    assert frames[0].video.start == 1
    np.testing.assert_allclose([f.time for f in frames], np.array(PTS) / 1000)


def test_times_where_the_file_has_none(make_video):
    """A bare stream of H.264 has no container: frames follow each other."""
    frames = list(read_video(make_video('clip.h264')))
    np.testing.assert_allclose(np.diff([f.time for f in frames]), 1 / 25)


def test_times_go_on_where_the_clock_is_set_back(make_video):
    """Two files joined into one."""
    path = make_video('clip.ts', range(0, 2000, 40))
    path.write_bytes(path.read_bytes() * 2)
    times = [frame.time for frame in read_video(path)]
    assert len(times) >= 98
    np.testing.assert_allclose(np.diff(times), 0.04, atol=1e-3)


def test_what_was_decoded_of_a_cut_file_is_kept(make_video, log):
    path = make_video('clip.mkv', range(0, 4000, 40))
    whole = [frame.image for frame in read_video(path)]
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    frames = list(read_video(path))
    assert 20 < len(frames) < 80
    for frame, image in zip(frames[:20], whole, strict=False):
        assert np.array_equal(frame.image, image)
    damage = frames[0].video.damage
    assert damage.startswith(f'only {len(frames)} frames were decoded: ')
    assert f'it ends after {frames[-1].time + 0.04:.2f} of 4.00 s' in damage
    assert f'{path}: {damage}' in log.text


def test_a_broken_piece_does_not_end_the_video(make_video):
    path = make_video(pts=range(0, 4000, 40))
    av = import_av()
    with av.open(str(path)) as file:
        packets = [(p.pos, p.size) for p in file.demux(video=0) if p.size]
    data = bytearray(path.read_bytes())
    position, size = packets[50]
    data[position : position + size] = b'\xff' * size
    path.write_bytes(data)
    frames = list(read_video(path))
    assert 90 < len(frames) < 100 and frames[-1].time == 3.96
    assert 'pieces could not be decoded' in frames[0].video.damage


@pytest.mark.parametrize('what', ['text', 'half', 'sound', 'no frame'])
def test_no_frame_is_an_error(make_video, what):
    path = make_video(audio='aac')
    data = path.read_bytes()
    if what == 'text':
        path.write_text('text')
    elif what == 'half':
        path.write_bytes(data[:200])
    elif what == 'no frame':
        path.write_bytes(data[: data.index(b'mdat') + 8])
    else:
        path = path.with_suffix('.mp4')
        av = import_av()
        with av.open(str(path), 'w') as file:
            file.add_stream('aac', rate=16000, layout='mono')
            file.start_encoding()
    with pytest.raises(ValueError, match=path.name):
        list(read_video(path))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r'gone\.mp4'):
        list(read_video(tmp_path / 'gone.mp4'))


def test_without_pyav(make_video, monkeypatch):
    path = make_video()
    monkeypatch.setitem(sys.modules, 'av', None)
    with pytest.raises(ImportError, match=r'install sapiens2_mm\[video\]'):
        next(read_video(path))


def test_one_frame_is_held(make_video):
    alive = []
    for frame in read_video(make_video(pts=range(0, 4000, 40))):
        alive.append(weakref.ref(frame))
        del frame
        assert sum(one() is not None for one in alive) <= 1


class FakeCamera:
    """Gives three pictures."""

    opened = True

    def __init__(self, number):
        self.number, self.left = number, 3
        FakeCamera.last = self

    def isOpened(self):
        return self.opened

    def get(self, _):
        return 0.0

    def read(self):
        self.left -= 1
        return self.left >= 0, np.full((4, 6, 3), max(self.left, 0), np.uint8)

    def release(self):
        self.released = True


def test_camera(monkeypatch):
    monkeypatch.setattr(cv2, 'VideoCapture', FakeCamera)
    frames = list(read_video(1))
    assert [frame.image[0, 0, 0] for frame in frames] == [2, 1, 0]
    assert frames[0].path == 'camera_1' and FakeCamera.last.number == 1
    assert FakeCamera.last.released
    times = [frame.time for frame in frames]
    assert times == sorted({*times}) and 0 <= times[0] < times[-1] < 5
    monkeypatch.setattr(FakeCamera, 'opened', False)
    with pytest.raises(ValueError, match='cameras are numbered from 0, got -1'):
        list(read_video(-1))
    assert is_video(0) and not is_video(True)
    with pytest.raises(OSError, match='camera 3 cannot be opened'):
        list(read_video(3))
