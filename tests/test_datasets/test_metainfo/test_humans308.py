import os
import subprocess
import sys

import pytest

from sapiens2_mm.datasets.metainfo.humans308 import (
    KEYPOINT_NAMES,
    METAINFO,
    TOOTH_IDS,
    keypoint_ids,
)
from sapiens2_mm.datasets.metainfo.keypoint_metainfo import (
    check_keypoint_metainfo,
    keypoint_groups,
)


def test_table_is_complete():
    check_keypoint_metainfo(METAINFO)
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


def test_parts_have_colors_of_their_own():
    info = METAINFO['keypoint_info']
    groups = keypoint_groups(METAINFO)
    colors = {
        name: {tuple(info[i]['color']) for i in ids} for name, ids in groups.items()
    }
    parts = [colors[name] for name in ('body', 'face', 'left_hand', 'right_hand')]
    for i, first in enumerate(parts):
        for second in parts[i + 1 :]:
            assert not first & second


def test_ids_by_name():
    assert keypoint_ids(['left_wrist', 'nose']) == [62, 0]
    with pytest.raises(ValueError, match=r"\['left_knie'\].*308"):
        keypoint_ids(['nose', 'left_knie'])


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
