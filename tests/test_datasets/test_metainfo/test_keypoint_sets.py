import copy

import pytest

from sapiens2_mm.datasets.metainfo import keypoint_sets
from sapiens2_mm.datasets.metainfo.humans308 import METAINFO
from sapiens2_mm.datasets.metainfo.keypoint_sets import KEYPOINT_SETS, keypoint_set

BODY_25 = """
Nose Neck RShoulder RElbow RWrist LShoulder LElbow LWrist MidHip RHip RKnee RAnkle LHip
LKnee LAnkle REye LEye REar LEar LBigToe LSmallToe LHeel RBigToe RSmallToe RHeel
"""


@pytest.mark.parametrize(
    ('name', 'file'),
    [('coco', 'coco'), ('coco-wholebody', 'coco_wholebody'), ('halpe26', 'halpe26')],
)
def test_names_mirrors_and_links_are_mmposes(name, file):
    utils = pytest.importorskip('mmpose.datasets.datasets.utils')
    theirs = utils.parse_pose_metainfo(
        dict(from_file=f'configs/_base_/datasets/{file}.py')
    )
    ours = keypoint_set(name).metainfo
    for key in ('num_keypoints', 'keypoint_id2name', 'flip_indices'):
        assert ours[key] == theirs[key], key
    links = [{frozenset(link) for link in m['skeleton_links']} for m in (ours, theirs)]
    assert links[0] == links[1]


@pytest.mark.parametrize('name', KEYPOINT_SETS)
def test_left_comes_from_left_and_right_from_right(name):
    """The mirror image of a row is the row of the mirrored name."""
    mirror = {
        info['name']: info['swap'] or info['name']
        for info in METAINFO['keypoint_info'].values()
    }
    points = {point.name: point for point in keypoint_set(name).points}
    for point in points.values():
        other = points[point.swap]
        assert other.swap == point.name and other.kind == point.kind
        assert {mirror[source] for source in point.sources} == {*other.sources}
        least, most = dict(exact=(1, 1), derived=(1, 4), absent=(0, 0))[point.kind]
        assert least <= len(point.sources) <= most
        for own, full in (('left', 'left_'), ('right', 'right_')):
            if point.name.startswith((own, own[0].upper())) and point.sources:
                assert all(source.startswith(full) for source in point.sources)
    face = keypoint_set('openpose').points[25:]  # the right eye of the person is first
    assert all(s.startswith('r_') for i in range(36, 42) for s in face[i].sources)
    assert face[68].sources == ('r_center_of_pupil',)


def test_openpose_and_smpl():
    openpose = keypoint_set('openpose')
    assert [point.name for point in openpose.points[:25]] == BODY_25.split()
    assert [len(ids) for ids in openpose.fields.values()] == [25, 70, 21, 21]
    neck = openpose.points[1]
    assert neck.kind == 'derived'
    assert neck.sources == ('left_shoulder', 'right_shoulder')
    smpl = [point.name for point in keypoint_set('smpl').points]
    assert (
        len(smpl) == 24
        and smpl[0] == 'pelvis'
        and smpl[15:17]
        == [
            *('head', 'left_shoulder'),
        ]
    )
    assert keypoint_set('coco-wholebody').metainfo['keypoint_groups']['face'] == [
        *range(23, 91),
    ]


def test_wrong_names_are_said(monkeypatch):
    with pytest.raises(ValueError, match=r"one of \['coco', .*got 'coco17'"):
        keypoint_set('coco17')
    table = copy.deepcopy(keypoint_sets._TABLE)
    table['parts']['smpl'][4][-1] = 'left_knie'
    monkeypatch.setattr(keypoint_sets, '_TABLE', table)
    with pytest.raises(ValueError, match=r"\['left_knie'\] are not among the 308"):
        keypoint_set.__wrapped__('smpl')
