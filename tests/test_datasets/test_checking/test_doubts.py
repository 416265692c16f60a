import re

import pytest

from sapiens2_mm.datasets.checking.doubts import (
    class_doubts,
    mirror_doubts,
    order_doubts,
)
from sapiens2_mm.datasets.metainfo import humans29, humans308


def pairs(*names):
    return dict(zip(names, reversed(names), strict=True))


def test_our_own_tables_leave_no_doubt():
    meta = humans29.METAINFO
    assert list(class_doubts(meta['classes'], meta['swap_classes'])) == []
    table = humans308.METAINFO['keypoint_info'].values()
    partners = {info['name']: info['swap'] or info['name'] for info in table}
    assert list(mirror_doubts(list(partners), partners)) == []


@pytest.mark.parametrize(
    'names, partners, doubt',
    [
        (['nose', 'left_eye', 'right_eye'], pairs('left_eye', 'right_eye'), None),
        (['L_Arm', 'R_Arm'], pairs('L_Arm', 'R_Arm'), None),
        (['l_line_1', 'r_line_2'], pairs('l_line_1', 'r_line_2'), None),
        (['arm a', 'arm b'], pairs('arm a', 'arm b'), None),
        (['left_eye', 'right_eye'], {}, "['left_eye', 'right_eye'] seem to be sides"),
        (['left_eye', 'nose'], {'nose': 'nose'}, "['left_eye'] seem to be sides"),
        (
            ['left_hand', 'left_foot'],
            pairs('left_hand', 'left_foot'),
            'left_foot and left_hand change places',
        ),
        (
            ['left_hand', 'right_foot'],
            pairs('left_hand', 'right_foot'),
            'left_hand and right_foot change places',
        ),
        (['shirt', 'hat'], pairs('shirt', 'hat'), 'hat and shirt change places'),
    ],
)
def test_mirror_partners(names, partners, doubt):
    found = list(mirror_doubts(names, partners))
    assert len(found) == (doubt is not None)
    assert not found or found[0].startswith(doubt)


@pytest.mark.parametrize(
    'classes, doubt',
    [
        (('Background', 'shirt'), None),
        (('water',), None),
        (('shirt', 'background'), 'not background; list that first'),
        (('shirt', 'hat'), 'shirt, is taken for the background .*its name says'),
    ],
)
def test_which_class_is_the_background(classes, doubt):
    found = list(class_doubts(classes, None))
    assert len(found) == (doubt is not None)
    assert not found or re.search(doubt, found[0])


def test_order():
    assert list(order_doubts('abc', 'ab')) == []
    assert list(order_doubts('abc', 'axc')) == []
    (doubt,) = order_doubts('abc', 'acb')
    assert doubt == ('2 names are in another order, such as c: number 1 instead of 2')
