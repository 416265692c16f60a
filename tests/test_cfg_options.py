import argparse

import pytest

from sapiens2_mm.cfg_options import CfgOptions

VALUES = {
    'coco/AP (M)': 'coco/AP (M)',
    'coco/AP .5': 'coco/AP .5',
    '"/my data/run 1"': '/my data/run 1',
    "['coco/AP', 'coco/AP (M)']": ['coco/AP', 'coco/AP (M)'],
    '[left arm, right arm]': ['left arm', 'right arm'],
    "('left  arm' , 'right arm')": ('left  arm', 'right arm'),
    '[(1, 2, 3), [a, b], c]': [(1, 2, 3), ['a', 'b'], 'c'],
    '1, 2': [1, 2],
    ' 3 ': 3,
    '1e-3': 1e-3,
    'True': True,
    'None': None,
}


@pytest.mark.parametrize('text', VALUES)
def test_blanks_inside_words_are_kept(text):
    parser = argparse.ArgumentParser()
    parser.add_argument('--cfg-options', nargs='+', action=CfgOptions)
    args = parser.parse_args(['--cfg-options', 'a.b=1', f'x.y={text}'])
    assert args.cfg_options == {'a.b': 1, 'x.y': VALUES[text]}
