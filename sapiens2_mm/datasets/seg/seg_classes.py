"""Class lists of segmentation data: checks, colours and mirror partners."""

import colorsys
import logging
import os.path as osp
from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.logging import print_log

Color = tuple[int, int, int]
MAX_CLASSES = 255
_KEYS = ('classes', 'palette', 'swap_classes')


def check_seg_metainfo(metainfo: Mapping | None, owner: str) -> None:
    """Refuse the usual slips in a class list.

    Raises:
        TypeError: if ``classes`` is a plain text that is no file.
        ValueError: for upper-case or unknown keys.
    """
    if metainfo is None:
        return
    for key in metainfo:
        if key not in _KEYS and key.lower() in _KEYS:
            raise ValueError(
                f'{owner}: metainfo has the key {key!r}; use {key.lower()!r}'
            )
    if unknown := [key for key in metainfo if key not in _KEYS]:
        raise ValueError(
            f'{owner}: metainfo has unknown keys {unknown}, expected {list(_KEYS)}'
        )
    classes = metainfo.get('classes')
    if isinstance(classes, str) and not osp.isfile(classes):
        raise TypeError(
            f'{owner}: classes must be a list of names, got the text {classes!r}; a '
            f'list of one name needs a trailing comma: ({classes!r},)'
        )


def check_classes(
    classes: Sequence[str], vocabulary: Sequence[str], owner: str
) -> None:
    """Refuse what is no list of different names of the vocabulary.

    Raises:
        TypeError: if it is no list of names.
        ValueError: for equal names, none or too many; lists names that are unknown.
    """
    if not isinstance(classes, list | tuple) or not all(
        isinstance(name, str) for name in classes
    ):
        raise TypeError(f'{owner}: classes must be a list of names, got {classes!r}')
    if not classes or len(set(classes)) != len(classes):
        raise ValueError(
            f'{owner}: classes must be different names, at least one, got '
            f'{list(classes)}'
        )
    if len(classes) > MAX_CLASSES:
        raise ValueError(
            f'{owner}: at most {MAX_CLASSES} classes, got {len(classes)}; labels have '
            '8 bits, and one value is ignored'
        )
    if unknown := [name for name in classes if name not in vocabulary]:
        raise ValueError(
            f'{owner}: classes {unknown} are not among the {len(vocabulary)} classes '
            f'{list(vocabulary)}; for an own class list use sapiens2_mm.SegDataset'
        )


def make_palette(
    classes: Sequence[str],
    palette: Sequence[Sequence[int]] | None,
    full: Mapping,
) -> list[Color]:
    """One RGB colour per class.

    Args:
        classes: the names in use.
        palette: colours of ``classes``, or of all classes of ``full``; None or empty
            makes up colours.
        full: meta information of the whole vocabulary, or an empty dict.

    Raises:
        ValueError: if the number of colours fits neither, or a colour is none.
    """
    if wrong := [color for color in palette or [] if not _is_color(color)]:
        raise ValueError(f'palette: expected RGB triples of 0 to 255, got {wrong[:3]}')
    colors = [tuple(int(v) for v in color) for color in palette or []]
    names = list(full.get('classes', classes))
    if not colors:
        return [_made_up_color(index) for index in range(len(classes))]
    if len(colors) == len(classes) and palette != full.get('palette'):
        return colors
    if len(colors) == len(names):
        return [colors[names.index(name)] for name in classes]
    raise ValueError(
        f'palette: {len(colors)} colours for {len(classes)} classes '
        f'{list(classes)}; give one RGB colour per class'
    )


def _is_color(value: Any) -> bool:
    try:
        return len(value) == 3 and all(0 <= int(v) < 256 for v in value)
    except (TypeError, ValueError):
        return False


def _made_up_color(index: int) -> Color:
    """Black for the background, then hues a golden angle apart."""
    if index == 0:
        return (0, 0, 0)
    value = 1.0 if index % 2 else 0.7
    rgb = colorsys.hsv_to_rgb(index * 0.618034 % 1, 0.75, value)
    return tuple(round(255 * v) for v in rgb)


def flip_pairs(
    classes: Sequence[str],
    swap_classes: Sequence[tuple[str, str]] | None,
    all_classes: Sequence[str],
    ignore_index: int = 255,
) -> list[tuple[int, int]]:
    """Ids that change places in a mirrored picture.

    A class whose partner is not in use is paired with ``ignore_index``: in a mirrored
    picture its pixels show the partner, which is not to be learned.

    Args:
        classes: the names in use.
        swap_classes: pairs of names; None means no class has a side, and warns if
            names say otherwise.
        all_classes: the whole vocabulary, to spot misspelt names.
        ignore_index: stands for a partner that is not in use.

    Raises:
        ValueError: if a name is unknown or in two pairs.
    """
    if swap_classes is None:
        sided = [n for n in classes if 'left' in n.lower() or 'right' in n.lower()]
        if sided:
            print_log(
                f'classes {sided} seem to be sides of the body, but '
                "metainfo['swap_classes'] names no pairs: mirrored pictures would mix "
                'them up',
                logger='current',
                level=logging.WARNING,
            )
        return []
    named = [tuple(pair) for pair in swap_classes]
    names = [name for pair in named for name in pair]
    unknown = sorted(set(names) - set(all_classes))
    if (
        unknown
        or len(set(names)) != len(names)
        or any(len(pair) != 2 for pair in named)
    ):
        raise ValueError(
            f'swap_classes: expected pairs of different class names, each name once; '
            f'unknown names: {unknown}, got {named}'
        )
    ids = {name: index for index, name in enumerate(classes)}
    pairs = [(ids.get(a, ignore_index), ids.get(b, ignore_index)) for a, b in named]
    return [pair for pair in pairs if pair != (ignore_index, ignore_index)]
