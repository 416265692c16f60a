"""Class lists of segmentation data: checks, palette and flip partners."""

import colorsys
from collections.abc import Mapping, Sequence

Color = tuple[int, int, int]
MAX_CLASSES = 255
METAINFO_KEYS = ('classes', 'palette', 'swap_classes')


def check_classes(
    classes: Sequence[str], vocabulary: Sequence[str], owner: str
) -> None:
    """Check that ``classes`` is a list of different names of the vocabulary.

    Raises:
        ValueError: if it is not, or has too many names.
    """
    names = classes if isinstance(classes, list | tuple) else ()
    are_names = all(isinstance(name, str) for name in names)
    if not are_names or not 0 < len(set(names)) == len(names) <= MAX_CLASSES:
        raise ValueError(
            f'{owner}: metainfo["classes"] must be a list of 1 to {MAX_CLASSES} '
            f'different names (labels have 8 bits), got {classes!r}; a list of one '
            "name needs a trailing comma: ('name',)"
        )
    if unknown := [name for name in names if name not in vocabulary]:
        raise ValueError(
            f'{owner}: classes {unknown} are not among the {len(vocabulary)} classes '
            f'{list(vocabulary)}; for an own class list use sapiens2_mm.SegDataset'
        )


def make_palette(
    classes: Sequence[str],
    palette: Sequence[Sequence[int]] | None,
    full: Mapping,
) -> list[Color]:
    """One RGB color per class.

    Args:
        classes: the names in use.
        palette: colors of ``classes``, or of all classes of ``full``; None or empty
            takes default colors.
        full: meta information of the whole vocabulary, or an empty dict.

    Raises:
        ValueError: if the number of colors fits neither, or a color is none.
    """
    if not palette:
        return [_default_color(index) for index in range(len(classes))]
    names = list(full.get('classes', classes))
    try:
        colors = [(int(r), int(g), int(b)) for r, g, b in palette]
    except (TypeError, ValueError):
        colors = []
    right = all(0 <= value < 256 for color in colors for value in color)
    if not right or len(colors) not in (len(classes), len(names)):
        raise ValueError(
            f'palette: expected {len(classes)} RGB colors of 0 to 255, one for each of '
            f'{list(classes)}, got {palette}'
        )
    if len(colors) == len(classes) and palette != full.get('palette'):
        return colors
    return [colors[names.index(name)] for name in classes]


def _default_color(index: int) -> Color:
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
        swap_classes: pairs of names; None means no class has a side.
        all_classes: the whole vocabulary, to spot misspelt names.
        ignore_index: stands for a partner that is not in use.

    Raises:
        ValueError: if a name is unknown or in two pairs.
    """
    named = swap_classes or ()
    fits = isinstance(named, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in named
    )
    names = [name for pair in named for name in pair] if fits else []
    unknown = [name for name in names if name not in all_classes]
    if not fits or unknown or len({*names}) < len(names):
        raise ValueError(
            'swap_classes: expected pairs of different class names, each once, got '
            f'{named!r:.200}; unknown names: {unknown}'
        )
    ids = {name: index for index, name in enumerate(classes)}
    pairs = [(ids.get(a, ignore_index), ids.get(b, ignore_index)) for a, b in named]
    return [pair for pair in pairs if pair != (ignore_index, ignore_index)]
