from fractions import Fraction

import numpy as np
import pytest

from sapiens2_mm.apis.video import read_video, writer
from sapiens2_mm.apis.video.reader import import_av
from sapiens2_mm.apis.video.writer import VideoWriter


def copy(path, target, picture=lambda frame: frame.image[..., ::-1], count=None):
    """The video written again; its frames."""
    written, frames = None, []
    for frame in read_video(path):
        written = written or VideoWriter(target, frame.video)
        written.write(np.ascontiguousarray(picture(frame)), frame)
        frames.append(frame)
        if len(frames) == count:
            break
    written.close(with_sound=count is None)
    return frames


def sound(path):
    """(N,) samples of the first audio stream, and when it starts."""
    with import_av().open(str(path)) as file:
        frames = list(file.decode(audio=0))
    samples = np.concatenate([frame.to_ndarray() for frame in frames], axis=1)
    return samples[0], frames[0].time, frames[0].sample_rate


@pytest.mark.parametrize('name', ['clip.mp4', 'clip.mkv', 'clip.ts'])
def test_times_and_colors_stay(make_video, tmp_path, name):
    frames = copy(make_video(name), tmp_path / 'out')
    again = list(read_video(tmp_path / 'out'))
    start = Fraction(frames[0].pts) * frames[0].video.time_base
    np.testing.assert_allclose(
        [float(frame.pts * frame.video.time_base) for frame in again],
        [float(frame.pts * frame.video.time_base - start) for frame in frames],
        atol=1e-9,
    )
    for one, other in zip(frames, again, strict=True):
        assert np.abs(one.image.astype(int) - other.image).mean() < 5
        np.testing.assert_allclose(one.image[40, 8], other.image[40, 8], atol=12)


def test_the_file_says_what_its_colors_are(make_video, tmp_path):
    copy(make_video(), tmp_path / 'out')
    with import_av().open(str(tmp_path / 'out')) as file:
        frame = next(file.decode(video=0))
        assert file.format.name == 'mov,mp4,m4a,3gp,3g2,mj2'
    assert (frame.colorspace, frame.color_primaries, frame.color_trc) == (1, 1, 1)
    assert frame.format.name == 'yuv420p'


@pytest.mark.parametrize('turned', [False, True])
def test_pixels_that_are_not_square_stay_so(make_video, tmp_path, turned):
    matrix = [0, 1 << 16, 0, -1 << 16, 0, 0, 0, 0, 1 << 30] if turned else None
    copy(make_video(aspect=Fraction(16, 15), matrix=matrix), tmp_path / 'out')
    with import_av().open(str(tmp_path / 'out')) as file:
        aspect = file.streams.video[0].sample_aspect_ratio
    assert aspect == (Fraction(15, 16) if turned else Fraction(16, 15))


def test_sound_is_copied_bit_for_bit(make_video, tmp_path):
    path = make_video(audio='aac')
    copy(path, tmp_path / 'out')
    before, after = sound(path), sound(tmp_path / 'out')
    assert np.array_equal(before[0], after[0]) and before[1:] == after[1:]


def test_other_sound_becomes_aac(make_video, tmp_path):
    path = make_video('clip.mkv', audio='pcm_s16le')
    copy(path, tmp_path / 'out')
    before, _, _ = sound(path)
    after, start, rate = sound(tmp_path / 'out')
    assert rate == 48000 and abs(start) < 0.05
    assert abs(len(after) / rate - len(before) / 16000) < 0.05
    spectrum = np.abs(np.fft.rfft(after))
    frequency = spectrum.argmax() / len(after) * rate
    assert abs(frequency - 0.1 / (2 * np.pi) * 16000) < 2


def test_sound_ends_with_frames_that_were_interrupted(make_video, tmp_path):
    path = make_video(audio='aac')
    frames = copy(path, tmp_path / 'out', count=5)
    samples, _, rate = sound(tmp_path / 'out')
    assert 0.1 < len(samples) / rate < frames[-1].time + 0.2
    assert len(list(read_video(tmp_path / 'out'))) == 5


def test_sound_of_joined_files(make_video, tmp_path):
    """What is heard before its clock is set back is kept, and the file is whole."""
    path = make_video('clip.ts', range(0, 2000, 40), audio='aac')
    path.write_bytes(path.read_bytes() * 2)
    frames = copy(path, tmp_path / 'out')
    assert len(list(read_video(tmp_path / 'out'))) == len(frames) > 90
    samples, _, rate = sound(tmp_path / 'out')
    assert abs(len(samples) / rate - 1.96) < 0.2


def test_what_is_left_of_broken_sound_is_kept(make_video, tmp_path, log, monkeypatch):
    monkeypatch.setattr(writer, '_MP4_SOUND', ())  # it is decoded
    path = make_video('clip.mkv', range(0, 2000, 40), audio='alac')
    whole, _, _ = sound(path)
    data = bytearray(path.read_bytes())
    with import_av().open(str(path)) as file:
        packets = [bytes(packet) for packet in file.demux(audio=0) if packet.size]
    place = data.index(packets[len(packets) // 2])
    size = len(packets[len(packets) // 2])
    data[place : place + size] = bytes(size)
    path.write_bytes(data)
    copy(path, tmp_path / 'out')
    assert f'{path}: 1 pieces of the sound are lost' in log.text
    samples, _, rate = sound(tmp_path / 'out')
    assert len(whole) / 16000 - 0.3 < len(samples) / rate < len(whole) / 16000 + 0.1


def test_odd_sizes(make_video, tmp_path):
    """The last row and column are repeated; other sizes are brought to the first."""

    def picture(frame):
        image = np.full((31, 45, 3), 10, np.uint8)
        image[-1], image[:, -1] = 200, 200
        return image if frame.index < 5 else image[:10, :10]

    copy(make_video(), tmp_path / 'out', picture)
    frames = list(read_video(tmp_path / 'out'))
    assert {frame.image.shape for frame in frames} == {(32, 46, 3)}
    np.testing.assert_allclose(frames[0].image[-1, :-1], 200, atol=25)
