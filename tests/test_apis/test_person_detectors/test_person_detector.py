import numpy as np
import pytest

from sapiens2_mm.apis.person_detectors.person_detector import PersonDetector

IMAGE = np.zeros((100, 200, 3), np.uint8)
A, B, C = [10, 10, 50, 90], [12, 10, 52, 90], [100.5, 20, 150, 80]


class Fixed(PersonDetector):
    def __init__(self, *rows, score_thr=0.3, nms_thr=0.65, max_people=None):
        super().__init__(score_thr, nms_thr, max_people)
        self.rows = np.reshape(rows, (-1, 5))

    def detect(self, image):
        assert np.array_equal(image, IMAGE)
        return self.rows[:, :4], self.rows[:, 4]


@pytest.mark.parametrize(
    'rows, options, expected',
    [
        ([], {}, []),
        ([[*A, 0.5], [*C, 0.75]], {}, [[*C, 0.75], [*A, 0.5]]),
        ([[*A, 0.25], [*C, 0.75]], {}, [[*C, 0.75]]),
        ([[*A, 0.25], [*C, 0.75]], dict(score_thr=0.25), [[*C, 0.75], [*A, 0.25]]),
        # A and B overlap by 38 / 42
        ([[*A, 0.5], [*B, 0.75]], {}, [[*B, 0.75]]),
        ([[*A, 0.5], [*B, 0.75]], dict(nms_thr=0.91), [[*B, 0.75], [*A, 0.5]]),
        ([[*A, 0.5], [*C, 0.75]], dict(max_people=1), [[*C, 0.75]]),
        ([[-5, -7, 230, 1e6, 1]], {}, [[0, 0, 200, 100, 1]]),
        ([[-50, 5, 1, 90, 1]], {}, []),  # one pixel of it is in the picture
        ([[300, 5, 400, 90, 1]], {}, []),
        ([[50, 5, 51, 90, 1]], {}, []),
    ],
)
def test_which_boxes_are_kept(rows, options, expected):
    found = Fixed(*rows, **options)(IMAGE)
    assert found.dtype == np.float32 and found.shape == (len(expected), 5)
    assert found.tolist() == expected


def test_pictures_are_those_of_every_task():
    people = [[*A, 0.5]]
    for same in (
        IMAGE[..., 0],
        IMAGE.astype(np.uint16),
        np.dstack((IMAGE, IMAGE))[..., :4],
    ):
        assert Fixed(*people)(same).tolist() == people
    with pytest.raises(TypeError, match='expected pictures as'):
        Fixed(*people)(None)


@pytest.mark.parametrize(
    'options, message',
    [
        (dict(score_thr=30), r'score_thr must be in 0\.\.1, got 30'),
        (dict(nms_thr=-0.1), r'nms_thr must be in 0\.\.1, got -0\.1'),
        (dict(max_people=0), 'max_people must be at least 1, got 0'),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        Fixed(**options)
