import numpy as np
import pytest

pytest.importorskip('mmpose')

from sapiens2_mm.datasets import Humans308Dataset
from sapiens2_mm.datasets.metainfo.humans308 import KEYPOINT_NAMES


@pytest.fixture
def doubts(mini_coco, table5, log):
    def build(*persons, table=None, **options):
        path = mini_coco(*persons, **options)
        dataset = Humans308Dataset(
            ann_file=path.name, data_root=str(path.parent), metainfo=table or table5
        )
        assert all(doubt in log.text for doubt in dataset.doubts)
        assert all(doubt.startswith(str(path)) for doubt in dataset.doubts)
        return [doubt.removeprefix(f'{path}: ') for doubt in dataset.doubts]

    return build


def test_good_data(doubts, data_dir):
    partly_outside = dict(bbox=[-4, 20, 60, 50])
    assert doubts({}, partly_outside, dict(iscrowd=1, bbox=[], keypoints=[])) == []
    dataset = Humans308Dataset(
        data_root=str(data_dir / 'synthetic_humans'),
        ann_file='annotations/train.json',
    )
    assert dataset.doubts == []


def test_normalized_boxes_and_keypoints(doubts):
    points = [[0.2, 0.1 * i, 2] for i in range(5)]
    bad = dict(id=70, bbox=[0.1, 0.1, 0.8, 0.7], keypoints=np.ravel(points).tolist())
    box, keypoints = doubts({}, bad)
    assert box.startswith('1 of 2 have a box within 0..1; multiply')
    assert keypoints.startswith('1 of 2 have all keypoints within 0..1; multiply')
    assert box.endswith('the first is 70') and keypoints.endswith('the first is 70')


def test_corners_for_width_and_height(doubts):
    (doubt,) = doubts(dict(bbox=[20, 10, 40, 60]), dict(bbox=[20, 30, 40, 62]), {})
    assert doubt.startswith('2 of 3 have a box that leaves its image, but fits as x1,')
    assert doubts(dict(bbox=[20, 10, 40, 60]), {}, {}) == []


def test_points_outside(doubts):
    points = [[60, 70, 2]] * 3 + [[5, 5, 2], [6, 6, 2]]
    (doubt,) = doubts({}, dict(id='b', keypoints=np.ravel(points).tolist()))
    assert doubt.startswith('1 of 2 have most keypoints outside the image; are its')
    assert doubt.endswith("the first is 'b'")


def test_tables(doubts, table5):
    table5['sigmas'] = [0.05, 0.05, 5, 0.05, 0.6]
    (doubt,) = doubts({})
    assert doubt.startswith("the sigmas of ['right_0', 'right_1'] are above 0.5")
    table5['sigmas'] = [0.05] * 5
    for info in table5['keypoint_info'].values():
        info['swap'] = ''
    (doubt,) = doubts({})
    assert "'right_1'] seem to be sides of the body" in doubt


def test_keypoints_of_the_categories(doubts):
    names = ['nose', 'left_0', 'right_0', 'left_1', 'right_1']
    same = dict(id=1, name='person', keypoints=names)
    assert doubts({}, categories=[same]) == []
    other = dict(same, keypoints=['left_0', 'nose', *names[2:]])
    (doubt,) = doubts({}, categories=[other])
    assert doubt == (
        "keypoints of category 'person': 2 names are in another order, such as left_0: "
        'number 0 instead of 1'
    )
    foreign = dict(same, keypoints=list(KEYPOINT_NAMES))
    assert len(doubts({}, categories=[foreign])) == 0
