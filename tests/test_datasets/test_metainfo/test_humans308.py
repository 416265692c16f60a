import copy
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from sapiens2_mm.datasets.metainfo.humans308 import (
    COCO17_NAMES,
    KEYPOINT_NAMES,
    METAINFO,
    TOOTH_IDS,
    keypoint_ids,
    select_keypoints,
)
from sapiens2_mm.datasets.metainfo.keypoint_metainfo import (
    check_keypoint_table,
    keypoint_groups,
)


def test_table_is_complete():
    check_keypoint_table(METAINFO)
    assert len(KEYPOINT_NAMES) == len(set(KEYPOINT_NAMES)) == 308
    assert len(METAINFO['sigmas']) == len(METAINFO['joint_weights']) == 308
    assert min(METAINFO['sigmas']) > 0
    assert len(METAINFO['skeleton_info']) == 65


def test_mirror_map_is_its_own_inverse():
    swap = {info['name']: info['swap'] for info in METAINFO['keypoint_info'].values()}
    assert all(swap[swap[name]] == name for name in KEYPOINT_NAMES)
    for name in KEYPOINT_NAMES:
        if name.startswith(('left_', 'right_', 'l_', 'r_')):
            assert swap[name] != name


def test_groups_and_half_bodies():
    groups = keypoint_groups(METAINFO)
    assert {name: len(ids) for name, ids in groups.items()} == dict(
        body=17, foot=6, left_hand=20, right_hand=20, extra_body=7, face=238
    )
    types = [info['type'] for info in METAINFO['keypoint_info'].values()]
    assert types.count('lower') == 12 and types.count('upper') == 51
    # Left and right foot differ, as in the official table.
    feet = {
        METAINFO['keypoint_info'][i]['name']: METAINFO['sigmas'][i]
        for i in groups['foot']
    }
    assert feet['left_big_toe'] == 0.068 and feet['right_big_toe'] == 0.092


def test_parts_have_colours_of_their_own():
    info = METAINFO['keypoint_info']
    groups = keypoint_groups(METAINFO)
    colors = {
        name: {tuple(info[i]['color']) for i in ids} for name, ids in groups.items()
    }
    parts = [colors[name] for name in ('body', 'face', 'left_hand', 'right_hand')]
    for i, first in enumerate(parts):
        for second in parts[i + 1 :]:
            assert not first & second


def test_coco17_by_name():
    ids = keypoint_ids(COCO17_NAMES)
    assert [KEYPOINT_NAMES[i] for i in ids] == list(COCO17_NAMES)
    points = np.random.default_rng(0).random((2, 308, 2))
    picked = select_keypoints(points)
    assert picked.shape == (2, 17, 2)
    np.testing.assert_array_equal(picked[:, 9], points[:, 62])  # left wrist
    tensor = select_keypoints(torch.from_numpy(points))
    np.testing.assert_array_equal(tensor.numpy(), picked)
    with pytest.raises(ValueError, match=r"\['left_knie'\].*308"):
        keypoint_ids(['nose', 'left_knie'])
    with pytest.raises(ValueError, match=r'\(\.\.\., 308, D\).*\(17, 2\)'):
        select_keypoints(points[0, :17])


def test_teeth_are_36_ids():
    assert len(TOOTH_IDS) == 36 and 344 - len(TOOTH_IDS) == 308


def test_table_is_found_from_any_folder(tmp_path):
    code = (
        'from sapiens2_mm.datasets.metainfo.humans308 import METAINFO;'
        'print(len(METAINFO["sigmas"]))'
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    env = {**os.environ, 'PYTHONPATH': root}
    done = subprocess.run(
        [sys.executable, '-c', code], cwd=tmp_path, env=env, capture_output=True
    )
    assert done.stdout.split()[-1] == b'308', done.stderr


@pytest.mark.parametrize(
    'change, message',
    [
        (dict(sigmas=[]), '5 keypoints, 0 sigmas'),
        (dict(sigmas=[0.05] * 17), '5 keypoints, 17 sigmas'),
        (dict(keypoint_info={'0': dict(name='nose')}), r"0 to 0 in order, got \['0'\]"),
        (dict(sigmas=[0.05, 0, 1, 1, 1]), 'must be > 0'),
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
        (dict(sigmas=None), 'sigmas: expected a list of numbers, got None'),
        (dict(sigmas=['a'] * 5), 'sigmas: expected a list of numbers'),
        (dict(joint_weights=1.0), 'joint_weights: expected a list of numbers, got 1'),
    ],
)
def test_faults_of_a_table(table5, change, message):
    with pytest.raises(ValueError, match=message):
        check_keypoint_table({**table5, **change})


def test_mirror_partners_must_agree(table5):
    broken = copy.deepcopy(table5)
    broken['keypoint_info'][1]['swap'] = 'right_1'
    with pytest.raises(ValueError, match='left_0 swaps with right_1'):
        check_keypoint_table(broken)
    broken['keypoint_info'][1]['swap'] = None
    with pytest.raises(ValueError, match='left_0 swaps with None'):
        check_keypoint_table(broken)
    broken['keypoint_info'][1]['swap'] = 'nowhere'
    with pytest.raises(ValueError, match='nowhere swaps with nothing'):
        check_keypoint_table(broken)
    broken['keypoint_info'][1]['name'] = 'nose'
    with pytest.raises(ValueError, match='share a name'):
        check_keypoint_table(broken)
    del broken['sigmas']
    with pytest.raises(ValueError, match=r"\['sigmas'\] missing"):
        check_keypoint_table(broken)
