"""Strata, colors and shapes: numbers that need no renderer."""

import json
from pathlib import Path

import numpy as np
import pytest

from projects.synthetic_humans import classes, palette, shape
from projects.synthetic_humans.keypoint_names import keypoint_names
from projects.synthetic_humans.plan import BLOCK, sample_traits
from sapiens2_mm.datasets.metainfo.humans29 import METAINFO as HUMANS29
from sapiens2_mm.datasets.metainfo.humans308 import METAINFO as HUMANS308

TABLE = Path(palette.__file__).with_name('keypoint_table.json')


def test_vocabulary_equals_the_package():
    assert list(HUMANS29['classes']) == list(classes.SEG_CLASSES)
    infos = [HUMANS308['keypoint_info'][i] for i in range(308)]
    assert [info['name'] for info in infos] == keypoint_names()


def test_keypoint_table_entries_are_complete():
    table = json.loads(TABLE.read_text())
    assert 0.005 < table['lip_split'] < 0.03
    for i, entry in enumerate(table['keypoints']):
        assert entry['id'] == i
        if 'bone' in entry:
            assert entry['end'] in ('head', 'tail')
        else:
            assert len(entry['vertices']) == len(entry['weights']) > 0
            assert max(entry['vertices']) < 19158 and min(entry['vertices']) >= 0
            assert sum(entry['weights']) == pytest.approx(1, abs=1e-4)


def test_keypoint_table_is_mirrored():
    """A left bone's partner is the right bone; vertex points have partners too."""
    entries = json.loads(TABLE.read_text())['keypoints']
    by_name = {entry['name']: entry for entry in entries}
    for info in HUMANS308['keypoint_info'].values():
        if info['swap'] in ('', info['name']):
            continue
        entry, other = by_name[info['name']], by_name[info['swap']]
        assert ('bone' in entry) == ('bone' in other)
        if 'bone' in entry:
            letters = {'L': 'R', 'R': 'L'}
            stem, letter = entry['bone'].split('.')
            assert other['bone'] == f'{stem}.{letters[letter]}'
            assert other['end'] == entry['end']


@pytest.mark.parametrize(
    ('bone', 'region'),
    [
        ('upperleg01.L', 'Left_Upper_Leg'),
        ('toe5-3.R', 'Right_Foot'),
        ('metacarpal2.L', 'Left_Hand'),
        ('lowerarm02.R', 'Right_Lower_Arm'),
        ('clavicle.L', 'Torso'),
        ('spine03', 'Torso'),
        ('pelvis.R', 'Torso'),
        ('neck02', 'Face_Neck'),
        ('oris02', 'Face_Neck'),
    ],
)
def test_bone_region(bone, region):
    assert classes.bone_region(bone) == region


@pytest.mark.parametrize('seed', [0, 1, 17])
def test_every_block_holds_every_stratum(seed):
    blocks = [
        [sample_traits(seed, b * BLOCK + i) for i in range(BLOCK)] for b in range(4)
    ]
    for block in blocks:
        framings = [t.framing for t in block]
        assert [framings.count(f) for f in ('full', 'upper', 'head')] == [4, 2, 2]
        full = {t.feet for t in block if t.framing == 'full'}
        assert full == {'bare', 'sock', 'shoe', 'shoe+sock'}
        assert any(t.framing == 'head' and t.mouth == 'open' for t in block)
        assert any(t.framing == 'head' and t.glasses for t in block)
        assert sum(t.cap for t in block) == 2 and sum(t.belt for t in block) == 3
    orders = {tuple(t.feet + t.framing for t in block) for block in blocks}
    assert len(orders) > 1


def test_cloth_colors_are_never_skin_like():
    rng = np.random.default_rng(0)
    skin = palette.skin_tone(np.linspace(0, 1, 101)) ** (1 / 2.2)
    for _ in range(500):
        coded = palette.sample_cloth_color(rng) ** (1 / 2.2)
        distance = np.linalg.norm(skin - coded, axis=1).min()
        assert distance > 0.24
        # Muted red to yellow: red leads, blue trails, and not nearly gray.
        red, green, blue = coded
        warm = red > green > blue and red / (green + 1e-9) < 2.5
        assert not (warm and 0.15 < (red - blue) / red < 0.75 and green < 0.85 * red)


@pytest.mark.parametrize(
    ('color', 'expected'),
    [
        ((0.72, 0.44, 0.31), True),  # light skin
        ((0.13, 0.062, 0.036), True),  # dark skin
        ((0.8, 0.5, 0.45), True),  # pale pink
        ((0.35, 0.22, 0.12), True),  # beige brown
        ((0.05, 0.2, 0.7), False),  # blue
        ((0.1, 0.6, 0.2), False),  # green
        ((0.75, 0.02, 0.03), False),  # saturated red
        ((0.85, 0.85, 0.85), False),  # white
    ],
)
def test_is_skin_like(color, expected):
    assert palette.is_skin_like(np.array(color)) is expected


def test_all_clothes_of_a_palette_differ_from_the_skin():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        person = palette.sample_palette(shape.sample_shape(rng), rng)
        for name in ('top', 'top_print', 'bottom', 'sock', 'shoe', 'belt', 'cap'):
            assert not palette.is_skin_like(getattr(person, name))


def test_only_adults_are_drawn():
    rng = np.random.default_rng(0)
    shapes = [shape.sample_shape(rng) for _ in range(300)]
    assert min(s['age'] for s in shapes) >= shape.MIN_ADULT_AGE > 0.6
    for s in shapes:
        total = s['african'] + s['asian'] + s['caucasian']
        assert total == pytest.approx(1)
        assert all(0 <= v <= 1 for v in s.values())


def test_open_mouths_show_teeth_and_tongue():
    rng = np.random.default_rng(0)
    face = shape.sample_expression('open', rng)
    assert face['jawOpen'] >= 0.6 and face['tongueOut'] > 0
    assert face['mouthUpperUpLeft'] == face['mouthUpperUpRight'] > 0.5
    smile = shape.sample_expression('smile', rng)
    assert smile['mouthSmileLeft'] == smile['mouthSmileRight'] > 0
