import json

import numpy as np
import pytest

from sapiens2_mm.apis import Picture, PoseResult, convert_keypoints
from sapiens2_mm.apis.results import SegResult
from sapiens2_mm.datasets.metainfo.humans308 import (
    KEYPOINT_NAMES,
    METAINFO,
    keypoint_ids,
)
from sapiens2_mm.datasets.metainfo.keypoint_conversion import KeypointConversion
from sapiens2_mm.datasets.metainfo.keypoint_sets import KEYPOINT_SETS, keypoint_set


@pytest.fixture
def people():
    """(2, 308, 2) points and (2, 308) scores, all different."""
    rng = np.random.default_rng(0)
    return rng.random((2, 308, 2), np.float32) * 100, rng.random((2, 308), np.float32)


def converted(people, target, names=KEYPOINT_NAMES):
    """{name: (points, scores)}."""
    points, scores = KeypointConversion(names, target)(*people)
    return {
        point.name: (points[:, i], scores[:, i])
        for i, point in enumerate(keypoint_set(target).points)
    }


def test_coco_is_exact(people):
    meta = keypoint_set('coco').metainfo
    found = converted(people, 'coco')
    assert list(found) == list(meta['keypoint_name2id']) and len(found) == 17
    for name, (points, scores) in found.items():
        (index,) = keypoint_ids([name])
        np.testing.assert_array_equal(points, people[0][:, index])
        np.testing.assert_array_equal(scores, people[1][:, index])


def test_derived_and_absent(people):
    found = converted(people, 'halpe26')
    left, right = keypoint_ids(['left_hip', 'right_hip'])
    points, scores = found['hip']
    np.testing.assert_allclose(points, people[0][:, [left, right]].mean(1), rtol=1e-6)
    np.testing.assert_array_equal(scores, people[1][:, [left, right]].min(1))
    points, scores = found['head']
    assert np.isnan(points).all() and (scores == 0).all()
    assert points.dtype == np.float32 and scores.dtype == np.float32
    thumb = converted(people, 'coco-wholebody')['right_thumb1'][0]
    (index,) = keypoint_ids(['right_thumb_third_joint'])
    np.testing.assert_array_equal(thumb, people[0][:, index])


@pytest.mark.parametrize('target', KEYPOINT_SETS)
def test_a_mirrored_picture_gives_mirrored_points(people, target):
    names = {info['name']: i for i, info in METAINFO['keypoint_info'].items()}
    flip = [names[info['swap']] for info in METAINFO['keypoint_info'].values()]
    convert = KeypointConversion(KEYPOINT_NAMES, target)
    points, scores = convert(*people)
    mirrored = people[0][:, flip] * np.float32([-1, 1]) + np.float32([99, 0])
    found, found_scores = convert(mirrored, people[1][:, flip])
    own_flip = convert.target.metainfo['flip_indices']
    expected = points[:, own_flip] * np.float32([-1, 1]) + np.float32([99, 0])
    np.testing.assert_allclose(found, expected, atol=1e-4)
    np.testing.assert_array_equal(found_scores, scores[:, own_flip])
    assert np.isnan(found).any() == convert.absent.any()


def test_what_is_not_finite_stays_where_it_is(people):
    points, scores = people
    points[0, keypoint_ids(['left_hip'])] = np.nan
    found = converted((points, scores), 'halpe26')
    lost = {name for name, (xy, _) in found.items() if np.isnan(xy[0]).any()}
    assert lost == {'left_hip', 'hip', 'head'}
    assert not np.isnan(found['hip'][0][1]).any()


def test_own_names(people, log):
    """As far as the names exist, those of the target among them."""
    names = ['right_hip', 'head', 'thing', 'left_hip', 'left_big_toe']
    own = people[0][:, :5], people[1][:, :5]
    found = converted(own, 'halpe26', names)
    np.testing.assert_array_equal(found['head'][0], own[0][:, 1])
    np.testing.assert_allclose(found['hip'][0], own[0][:, [0, 3]].mean(1), rtol=1e-6)
    assert np.isnan(found['nose'][0]).all()
    assert 'halpe26: 21 of 26 keypoints are absent (score 0): nose, ' in log.text
    kinds = {p.name: p.kind for p in KeypointConversion(names, 'halpe26').points}
    assert [kinds[n] for n in ('head', 'hip', 'nose')] == [
        *('exact', 'derived', 'absent'),
    ]
    with pytest.raises(ValueError, match="none of the 2 keypoint names is known to 'c"):
        KeypointConversion(['a', 'b'], 'coco')
    with pytest.raises(ValueError, match=r'\(N, 5, D\), one per name, got \(2, 308'):
        KeypointConversion(names, 'coco')(*people)


def test_results(people):
    meta = dict(keypoint_id2name=dict(enumerate(KEYPOINT_NAMES)))
    picture = Picture(np.zeros((8, 8, 3), np.uint8))
    boxes = np.float32([[0, 0, 4, 4], [1, 1, 5, 5]])
    people = *people, np.ones(2, np.float32)
    result = PoseResult(picture, None, boxes, *people, 'given', metainfo=meta)
    coco = convert_keypoints(result, 'coco')
    assert coco.keypoints.shape == (2, 17, 2) and coco.keypoint_names[16] == (
        'right_ankle'
    )
    assert coco.boxes is boxes and coco.picture is picture
    again = convert_keypoints(coco, 'openpose')
    np.testing.assert_array_equal(again.keypoints[:, 0], people[0][:, 0])
    nobody = PoseResult(
        picture, None, boxes[:0], *(a[:0] for a in people), 'given', metainfo=meta
    )
    assert convert_keypoints(nobody, 'smpl').keypoints.shape == (0, 24, 2)


@pytest.mark.parametrize(
    'result, name',
    [(SegResult(None, None, np.zeros((2, 2))), 'SegResult'), ([], 'list')],
)
def test_results_of_other_tasks(result, name):
    with pytest.raises(
        TypeError, match=f'convert_keypoints: expected a PoseResult, .* got {name}; ch'
    ):
        convert_keypoints(result, 'coco')


@pytest.fixture(scope='module')
def face(data_dir):
    """The 68 face points of a synthetic person."""
    path = data_dir / 'synthetic_humans/annotations/train.json'
    (truth, *_) = [
        annotation
        for annotation in json.loads(path.read_text())['annotations']
        if np.reshape(annotation['keypoints'], (308, 3))[70:, 2].all()
    ]
    points = np.reshape(truth['keypoints'], (1, 308, 3))
    convert = KeypointConversion(KEYPOINT_NAMES, 'coco-wholebody')
    return convert(points[..., :2], points[..., 2])[0][0, 23:91]


@pytest.mark.parametrize('start, end', [(36, 42), (42, 48), (48, 60), (60, 68)])
def test_contours_of_the_face_go_round(face, start, end):
    """Clockwise in the picture, each point after the one before."""
    x, y = (face[start:end] - face[start:end].mean(0)).T
    assert (np.diff(np.unwrap(np.arctan2(y, x))) > 0).all()
