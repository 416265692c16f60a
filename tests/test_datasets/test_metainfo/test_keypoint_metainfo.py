import copy

import pytest

from sapiens2_mm.datasets.metainfo.keypoint_metainfo import check_keypoint_metainfo


@pytest.mark.parametrize(
    'change, message',
    [
        (dict(sigmas=[]), '5 keypoints, 0 sigmas'),
        (dict(sigmas=[0.05] * 17), '5 keypoints, 17 sigmas'),
        (dict(keypoint_info={'0': dict(name='nose')}), r"0 to 0 in order, got \['0'\]"),
        (dict(sigmas=[0.05, 0, 1, 1, 1]), 'must be > 0'),
        (dict(sigmas=[0.05, -1, 1, 1, 1]), 'sigmas must be numbers of at least 0'),
        (dict(joint_weights=[1.0]), '1 joint_weights'),
        (
            dict(skeleton_info={0: dict(link=('nose', 'toe'))}),
            r"\['toe'\].*not keypoints",
        ),
        (dict(skeleton_info={0: dict(link=('nose',))}), 'must be two keypoint names'),
        (dict(skeleton_info={0: dict(color=[0, 0, 0])}), 'link 0 must be two'),
        (dict(skeleton_info=[]), 'skeleton_info must be a dict'),
        (dict(keypoint_info=['nose']), 'keypoint_info must be a dict'),
        (dict(keypoint_info={0: 'nose'}), 'keypoint_info must be a dict'),
        (
            dict(keypoint_info={0: dict(swap='')}, sigmas=[1]),
            'every keypoint needs a name',
        ),
        (dict(sigmas=None), 'sigmas must be numbers of .*, got None'),
        (dict(sigmas=['a'] * 5), 'sigmas must be numbers'),
        (dict(joint_weights=1.0), '5 keypoints, 1 joint_weights'),
    ],
)
def test_faults(table5, change, message):
    with pytest.raises(ValueError, match=message):
        check_keypoint_metainfo({**table5, **change})


def test_mirror_partners_must_agree(table5):
    broken = copy.deepcopy(table5)
    broken['keypoint_info'][1]['swap'] = 'right_1'
    with pytest.raises(ValueError, match='left_0 swaps with right_1'):
        check_keypoint_metainfo(broken)
    broken['keypoint_info'][1]['swap'] = None
    with pytest.raises(ValueError, match='left_0 swaps with None'):
        check_keypoint_metainfo(broken)
    broken['keypoint_info'][1]['swap'] = 'nowhere'
    with pytest.raises(ValueError, match='nowhere swaps with nothing'):
        check_keypoint_metainfo(broken)
    broken['keypoint_info'][1]['name'] = 'nose'
    with pytest.raises(ValueError, match='share a name'):
        check_keypoint_metainfo(broken)
    del broken['sigmas']
    with pytest.raises(ValueError, match=r"\['sigmas'\] missing"):
        check_keypoint_metainfo(broken)
