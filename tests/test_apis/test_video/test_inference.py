"""Videos through the inferencer and into files, with tiny random models."""

import json
import os
import weakref

import numpy as np
import pytest

from sapiens2_mm.apis import (
    Failure,
    convert_keypoints,
    predict_to_folder,
)
from sapiens2_mm.apis.video import Frame, read_video
from sapiens2_mm.apis.video.reader import import_av
from sapiens2_mm.visualization.track_label import track_color

PTS = (0, 40, 80, 200, 210, 400, 440, 480, 1000, 1040)
PEOPLE = np.float32([[4, 4, 24, 44], [36, 6, 60, 46]])


def two_people(image):
    return PEOPLE


def lines(path):
    """Strict JSON, a record per line."""

    def refuse(text):
        raise AssertionError(text)

    text = path.read_text(encoding='utf-8')
    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def load(path):
    return json.loads(path.read_text(encoding='utf-8'))


def test_a_video_is_its_frames(make, make_video):
    """In order, whatever the batch; the same results as those of single pictures."""
    inferencer, path = make('seg')['seg'], make_video(pts=PTS[:5])
    results = list(inferencer(path, batch_size=2))
    assert [result.picture.index for result in results] == [0, 1, 2, 3, 4]
    frames = [frame.image for frame in read_video(path)]
    for result, expected in zip(results, inferencer(frames, batch_size=2), strict=True):
        assert isinstance(result.picture, Frame)
        assert np.array_equal(result.labels, expected.labels)


def test_people_of_several_frames_fill_a_batch(make, make_video, monkeypatch):
    inferencer, sizes = make('pose')['pose'], []
    forward = inferencer.forward

    def counted(samples):
        sizes.append(len(samples))
        return forward(samples)

    monkeypatch.setattr(inferencer, 'forward', counted)
    path = make_video(pts=PTS[:4])
    results = list(inferencer(path, boxes=two_people, batch_size=4))
    assert sizes == [4, 4]
    assert [r.track_ids.tolist() for r in results] == [[-1, -1], *[[0, 1]] * 3]
    assert results[0].boxes_from == 'two_people'
    for options in (dict(track=False, boxes=two_people), dict(whole_image=True)):
        (result, *_) = inferencer(make_video(pts=PTS[:1]), **options)
        assert result.track_ids is None


def test_memory_does_not_grow(make, make_video, monkeypatch):
    """Of 60 frames at most those of the batches under way are held."""
    made, most = [], 0
    create = Frame.__init__

    def counted(self, *args, **kwargs):
        create(self, *args, **kwargs)
        made.append(weakref.ref(self))

    monkeypatch.setattr(Frame, '__init__', counted)
    inferencer = make('normal')['normal']
    monkeypatch.setattr(inferencer, 'forward', lambda samples: [None] * len(samples))
    monkeypatch.setattr(inferencer.task, 'result', lambda job, outputs: job)
    for _ in inferencer(make_video(pts=range(0, 2400, 40)), batch_size=2):
        most = max(most, sum(one() is not None for one in made))
    assert len(made) == 60 and 2 <= most <= 12


def test_files_of_a_video(make, make_video, tmp_path, log):
    path = make_video('Ü 1.mp4', audio='aac')
    out = tmp_path / 'out'
    summary = predict_to_folder(
        make('pose', 'seg', 'normal'), path, out, boxes=two_people, batch_size=3
    )
    assert summary.done == 10 and not summary.failures
    assert '10 pictures and frames in ' in log.text
    for task, width in {'pose': 64, 'seg': 64, 'normal': 128}.items():
        assert {*os.listdir(out / task)} == {'Ü 1.mp4', 'Ü 1.jsonl', 'predictions.json'}
        (video,) = load(out / task / 'predictions.json')['videos']
        assert video == dict(video=str(path), frames=10, files=['Ü 1.mp4', 'Ü 1.jsonl'])
        drawn = list(read_video(out / task / 'Ü 1.mp4'))
        times = [frame.time for frame in drawn]
        np.testing.assert_allclose(times, np.array(PTS) / 1000)
        assert drawn[0].video.audio == 'aac'
        assert {frame.image.shape for frame in drawn} == {(48, width, 3)}
        records = lines(out / task / 'Ü 1.jsonl')
        assert [record['frame'] for record in records] == list(range(10))
        np.testing.assert_allclose([r['time'] for r in records], times)
        assert {(r['height'], r['width']) for r in records} == {(48, 64)}
    seg = lines(out / 'seg' / 'Ü 1.jsonl')
    assert all(sum(record['pixels'].values()) == 48 * 64 for record in seg)
    first, *others = lines(out / 'pose' / 'Ü 1.jsonl')
    assert [person['track_id'] for person in first['instances']] == [None, None]
    for record in others:
        assert [person['track_id'] for person in record['instances']] == [0, 1]
        assert [person['bbox'] for person in record['instances']] == PEOPLE.tolist()
        assert np.shape(record['instances'][1]['keypoints']) == (308, 2)


def test_pictures_and_videos_in_one_call(make, make_video, tmp_path):
    """Broken ones are named; no output overwrites an input."""
    folder = tmp_path / 'seg'
    good = make_video('seg/clip.mp4', PTS[:3])
    late = make_video('clip.MKV', range(0, 4000, 40))
    late.write_bytes(late.read_bytes()[: late.stat().st_size // 4])
    (tmp_path / 'text.mp4').write_text('text')
    before = good.read_bytes()
    image = np.zeros((20, 10, 3), np.uint8)
    inputs = [good, image, tmp_path / 'text.mp4', late, good]
    summary = predict_to_folder(make('seg'), inputs, tmp_path)
    assert good.read_bytes() == before
    assert {*summary.failures} == {str(tmp_path / 'text.mp4'), str(late)}
    assert 'cannot be read as a video' in summary.failures[str(tmp_path / 'text.mp4')]
    content = load(folder / 'predictions.json')
    assert content['failures'] == summary.failures and len(content['images']) == 1
    assert summary.failures[str(late)].startswith('only ')
    files = [video['files'][0] for video in content['videos']]
    assert files == ['clip_1.mp4', 'clip_2.mp4', 'clip_3.mp4']
    for video in content['videos']:
        name = video['files'][0]
        assert len(list(read_video(folder / name))) == video['frames'] > 2
        assert len(lines(folder / video['files'][1])) == video['frames']


def test_ctrl_c_leaves_whole_files(make, make_video, tmp_path, monkeypatch):
    inferencers = make('seg')
    forward, calls = inferencers['seg'].forward, []

    def stopped(samples):
        calls.append(samples)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return forward(samples)

    monkeypatch.setattr(inferencers['seg'], 'forward', stopped)
    with pytest.raises(KeyboardInterrupt):
        predict_to_folder(inferencers, make_video(audio='aac'), tmp_path / 'out')
    folder = tmp_path / 'out' / 'seg'
    assert len(list(read_video(folder / 'clip.mp4'))) == 4
    assert len(lines(folder / 'clip.jsonl')) == 4
    assert load(folder / 'predictions.json')['videos'][0]['frames'] == 4
    assert not [name for name in os.listdir(folder) if name.endswith('.tmp')]


def test_an_error_leaves_no_file(make, make_video, tmp_path, monkeypatch):
    inferencers, calls = make('seg'), []
    draw = inferencers['seg'].draw

    def failing(result, **options):
        calls.append(result)
        if len(calls) == 3:
            raise RuntimeError('no more')
        return draw(result, **options)

    monkeypatch.setattr(inferencers['seg'], 'draw', failing)
    with pytest.raises(RuntimeError, match='no more'):
        predict_to_folder(inferencers, make_video(), tmp_path / 'out')
    assert os.listdir(tmp_path / 'out' / 'seg') == ['predictions.json']


def test_boxes_of_frames_in_a_file(make, make_video, tmp_path):
    """By the name of the video and the frame; frames without an entry are empty."""
    path = make_video('A/clip.mp4', PTS[:3])
    images = [dict(id=i, file_name='A/clip.mp4', frame_id=i) for i in (0, 2)]
    boxes = [[4, 4, 20, 40], [6, 4, 20, 40]]
    annotations = [dict(image_id=i, bbox=b) for i, b in zip((0, 2), boxes, strict=True)]
    file = tmp_path / 'boxes.json'

    def write():
        file.write_text(json.dumps(dict(images=images, annotations=annotations)))
        return list(make('pose')['pose'](path, boxes=file, skip_errors=True))

    found = [result.boxes.tolist() for result in write()]
    assert found == [[[4, 4, 24, 44]], [], [[6, 4, 26, 44]]]
    images[0]['frame_id'] = '0'
    with pytest.raises(ValueError, match="frame_id must be an integer, got '0'"):
        write()
    images[:] = [dict(id=i, file_name=f'{i or "A/clip"}.mp4') for i in (0, 2)]
    failure, *_ = write()
    assert isinstance(failure, Failure)
    assert 'images of A/clip.mp4 need a frame_id, from 0' in failure.reason
    given = make('pose')['pose'](path, boxes=[PEOPLE, PEOPLE[:0]])
    assert [len(next(given).boxes), len(next(given).boxes)] == [2, 0]
    with pytest.raises(ValueError, match=r'picture 2 .* has no boxes, 2 lists were'):
        next(given)


def test_converted_keypoints_keep_the_numbers(make, make_video, tmp_path):
    path = make_video(pts=PTS[:2])
    options = dict(boxes=two_people, keypoints='coco', save=['json', 'png'])
    predict_to_folder(make('pose'), path, tmp_path / 'out', **options)
    *_, record = lines(tmp_path / 'out' / 'pose' / 'clip.jsonl')
    assert [person['track_id'] for person in record['instances']] == [0, 1]
    assert np.shape(record['instances'][0]['keypoints']) == (17, 2)
    (result, *_) = list(make('pose')['pose'](path, boxes=two_people))[1:]
    found = convert_keypoints(result, 'coco').data_sample.pred_instances
    assert found.track_ids.tolist() == [0, 1]


def test_what_does_not_fit_is_said_first(make, make_video, tmp_path):
    path = make_video(pts=PTS[:1])
    with pytest.raises(ValueError, match=r"of a video \['png', 'json'\] can be saved"):
        predict_to_folder(make('seg'), path, tmp_path / 'out', save=['npz'])
    with pytest.raises(ValueError, match='masks are for pictures'):
        make('normal')['normal'](path, masks=[np.ones((48, 64), bool)])
    assert not (tmp_path / 'out').exists()


def test_numbers_are_drawn_in_their_colors(make, make_video):
    inferencer, path = make('pose')['pose'], make_video(pts=PTS[:2])
    plain, numbered = inferencer(path, boxes=two_people)
    usual = (0, 255, 0)  # mmpose's green
    own = [track_color(0), track_color(1)]
    assert np.abs(np.subtract(*own)).max() > 150
    for result, colors in ((plain, [usual, usual]), (numbered, own)):
        drawn = inferencer.draw(result, kpt_thr=2)
        for place, color in zip(((44, 14), (46, 48)), colors, strict=True):
            np.testing.assert_allclose(drawn[place], color, atol=40)


def test_smoothing_is_in_files_and_drawings(make, make_video, tmp_path):
    path = make_video(pts=PTS[:4])
    inferencer = make('pose')['pose']
    plain = list(inferencer(path, boxes=two_people))
    smooth = list(inferencer(path, boxes=two_people, smooth=True))
    scores = plain[3].keypoint_scores
    assert np.array_equal(scores, smooth[3].keypoint_scores)
    moved = (plain[3].keypoints != smooth[3].keypoints).any(axis=-1)
    assert not moved[scores < 0.3].any()
    found = smooth[3].data_sample.pred_instances
    assert np.array_equal(found.keypoints, smooth[3].keypoints)
    alone = list(inferencer(path, whole_image=True, smooth=True))
    assert [r.track_ids.tolist() for r in alone] == [[-1], [0], [0], [0]]


def test_time_base_of_the_source_is_kept(make, make_video, tmp_path):
    """Also of a format that counts coarsely."""
    predict_to_folder(make('seg'), make_video('clip.mkv'), tmp_path / 'out')
    with import_av().open(str(tmp_path / 'out/seg/clip.mp4')) as file:
        times = [float(f.pts * f.time_base) for f in file.decode(video=0)]
    assert times == [t / 1000 for t in PTS]
