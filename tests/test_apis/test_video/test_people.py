"""Who is who in videos, by boxes that a test makes up."""

from fractions import Fraction

import numpy as np
import pytest

from sapiens2_mm.apis import PoseResult
from sapiens2_mm.apis.video import Frame, OneEuroFilter, Video
from sapiens2_mm.apis.video.people import PeopleFollower, follow_people

pytest.importorskip('trackers')

IMAGE = np.zeros((100, 200, 3), np.uint8)


def result(video, milliseconds, boxes, keypoints=None, scores=None, sure=1.0):
    boxes = np.array(boxes, np.float32).reshape(-1, 4)
    if keypoints is None:
        keypoints = np.stack((boxes[:, :2], boxes[:, 2:]), axis=1)
    if scores is None:
        scores = np.ones(keypoints.shape[:2], np.float32)
    frame = Frame(IMAGE, video.path, video=video, index=0, pts=milliseconds)
    sure = np.full(len(boxes), sure, np.float32)
    return PoseResult(frame, None, boxes, keypoints, scores, sure, 'detector')


@pytest.fixture
def video():
    return Video('clip.mp4', 25.0, Fraction(1, 1000))


def left(x):
    return [x, 20, x + 30, 90]


def test_people_that_cross_keep_their_numbers(video):
    """Whatever the order of the boxes is."""
    follow = PeopleFollower(video)
    numbers = []
    for step in range(20):
        boxes = [
            [5 + 8 * step, 10, 35 + 8 * step, 60],
            [160 - 7 * step, 30, 190 - 7 * step, 98],
        ]
        order = [0, 1] if step % 2 else [1, 0]
        ids = follow(result(video, 40 * step, np.array(boxes)[order])).track_ids
        numbers.append(ids[np.argsort(order)].tolist())
    assert numbers[0] == [-1, -1]
    assert {*map(tuple, numbers[1:])} in ({(0, 1)}, {(1, 0)})


def test_who_is_lost_briefly_comes_back_and_for_long_is_new(video):
    follow = PeopleFollower(video)
    for step in range(5):
        ids = follow(result(video, 40 * step, [left(50)])).track_ids
    assert ids.tolist() == [0]
    for time in (200, 400, 600):
        assert follow(result(video, time, [])).track_ids.shape == (0,)
    assert follow(result(video, 800, [left(50)])).track_ids.tolist() == [0]
    follow(result(video, 1200, []))
    follow(result(video, 3000, []))
    assert follow(result(video, 3040, [left(50)])).track_ids.tolist() == [-1]
    assert follow(result(video, 3080, [left(50)])).track_ids.tolist() == [1]


def test_unsure_boxes_continue_people_but_begin_none(video):
    follow = PeopleFollower(video)
    for step in range(3):
        ids = follow(result(video, 40 * step, [left(50)], sure=0.15)).track_ids
        assert ids.tolist() == [-1]
    for step, sure in enumerate((0.25, 0.25, 0.15, 0.15), 3):
        ids = follow(result(video, 40 * step, [left(50)], sure=sure)).track_ids
        assert ids.tolist() == [-1 if step == 3 else 0]


def test_movement_counts_in_time_not_in_frames(video):
    """5 pixels in 40 ms are 25 in 200 ms: the same person after a slow frame."""
    follow = PeopleFollower(video)
    for time in (0, 40, 80, 120, 160, 200, 240, 280, 480, 680):
        ids = follow(result(video, time, [left(5 + time / 8)])).track_ids
        assert ids.tolist() == [0 if time else -1]


def test_keypoints_of_a_person_are_smoothed_alone(video):
    rng = np.random.default_rng(0)
    follow, plain = PeopleFollower(video, smooth=True), OneEuroFilter()
    scores = np.float32([[0.9, 0.9, 0.2], [0.9, 0.9, 0.9]])
    for step in range(10):
        boxes = np.float32([left(10), left(120)])
        points = rng.normal(50, 2, (2, 3, 2)).astype(np.float32)
        given = points.copy()
        found = follow(result(video, 40 * step, boxes, points, scores))
        assert np.array_equal(points, given) and found.keypoints.dtype == np.float32
        if step:
            size = np.hypot(30, 70)
            expected = plain(given[0], 0.04 * step, scores[0] >= 0.3, scale=size)
            np.testing.assert_allclose(found.keypoints[0], expected, rtol=1e-6)
            assert np.array_equal(found.keypoints[0, 2], given[0, 2])
            assert not np.array_equal(found.keypoints[1], given[1]) or step == 1
        else:
            assert np.array_equal(found.keypoints, given)


def test_who_was_lost_starts_anew(video):
    follow = PeopleFollower(video, smooth=True)
    for step in range(5):
        follow(result(video, 40 * step, [left(50)]))
    moved = np.float32([[[80, 30], [90, 40]]])
    follow(result(video, 3000, [left(50)], moved))
    found = follow(result(video, 3040, [left(50)], moved + 10))
    assert found.track_ids.tolist() == [1]
    assert np.array_equal(found.keypoints, moved + 10)
    assert [*follow._filters] == [1]


def test_each_video_has_its_own_numbers(video):
    other = Video('other.mp4', 25.0, Fraction(1, 1000))
    boxes = [[left(50)], [left(50)], [left(120)], [left(120)]]
    items = [
        [result(one, 40 * (step % 2), box)]
        for step, (one, box) in enumerate(
            zip([video] * 2 + [other] * 2, boxes, strict=True)
        )
    ]
    ids = [item[0].track_ids.tolist() for item in follow_people(items, True)]
    assert ids == [[-1], [0], [-1], [0]]
    same = follow_people([[result(video, 0, boxes[0])]], False)
    assert next(same)[0].track_ids is None
    with pytest.raises(ValueError, match='smooth=True needs track=True'):
        follow_people([], False, smooth=True)
