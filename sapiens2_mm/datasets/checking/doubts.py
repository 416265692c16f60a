"""What can hardly be meant in a user's data, though a run would accept it.

A dataset logs its doubts when it is built and keeps them as ``doubts``, which
``check_dataset`` reports.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from mmengine.logging import print_log

_SIDE = re.compile('left|right|(?<![a-z])[lr](?![a-z])')
_OTHER_SIDE = dict(left='right', right='left', l='r', r='l')


def log_doubts(owner: str, doubts: Sequence[str]) -> None:
    """One warning per doubt."""
    for doubt in doubts:
        print_log(f'{owner}: {doubt}', logger='current', level=logging.WARNING)


def mirror_doubts(names: Sequence[str], partners: Mapping[str, str]) -> Iterator[str]:
    """Names of sides without flip partner, and partners of unlike names.

    Args:
        names: of keypoints or classes.
        partners: name -> what it changes places with in a mirrored picture; those on
            the axis of symmetry are absent, or their own partner.
    """
    paired = {a: b for a, b in partners.items() if a != b}
    alone = [n for n in names if n not in paired and _SIDE.search(n.lower())]
    if alone:
        yield (
            f'{alone} seem to be sides of the body, but have no flip partner: mirrored '
            'pictures would mix them up'
        )
    for first, second in paired.items():
        expected = _mirrored(first)
        unlike = expected != _without_numbers(second)
        if expected == _without_numbers(first):  # no side that we know
            unlike = SequenceMatcher(None, first, second).ratio() <= 0.5
        if unlike and (first < second or paired.get(second) != first):
            yield (
                f'{first} and {second} change places in a mirrored picture, but do not '
                'seem to be the two sides of one part'
            )


def _without_numbers(name: str) -> str:
    return re.sub('[0-9]+', '', name.lower())


def _mirrored(name: str) -> str:
    """The name of the other side; numbers may run the other way there."""
    return _SIDE.sub(lambda side: _OTHER_SIDE[side[0]], _without_numbers(name))


def order_doubts(expected: Sequence[str], found: Sequence[str]) -> Iterator[str]:
    """Names that both lists have, at different places."""
    places = {name: index for index, name in enumerate(expected)}
    moved = [name for i, name in enumerate(found) if places.get(name, i) != i]
    if moved:
        name = moved[0]
        yield (
            f'{len(moved)} names are in another order, such as {name}: number '
            f'{list(found).index(name)} instead of {places[name]}'
        )


def meta_names(meta: Mapping[str, Any]) -> list[str]:
    """Names of the classes or keypoints of parsed metainfo, by id."""
    ids = meta.get('keypoint_id2name') or dict(enumerate(meta.get('classes') or ()))
    return [ids[index] for index in sorted(ids)]


def class_doubts(
    classes: Sequence[str], swap_classes: Sequence[Sequence[str]] | None
) -> Iterator[str]:
    """Doubts about the class list of segmentation."""
    partners = dict(swap_classes or ())
    yield from mirror_doubts(
        classes, {**{b: a for a, b in partners.items()}, **partners}
    )
    named = [name for name in classes if 'background' in name.lower()]
    if len(classes) > 1 and (not named or named[0] != classes[0]):
        yield (
            f'the first class, {classes[0]}, is taken for the background (not counted '
            'by Dice, not tinted, replaced by RandomBackground), '
            + (f'not {named[0]}; list that first' if named else 'its name says another')
        )
