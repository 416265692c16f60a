"""From pixel values of a mask file to class ids.

Three things may stand between the two, always in this order: ``reduce_zero_label``
(0 becomes ignored, every other value drops by one), an own ``label_map`` of raw values
or a named source vocabulary, and a choice of classes in another order. The last two
are composed into one ``label_map``; a lookup table does all of it in one step, the same
for training and evaluation.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

# Marks pixel values that are neither a class nor ignored.
UNKNOWN = -1
_NUM_VALUES = 2**16


def compose_label_map(
    label_map: Mapping[int, int] | None,
    old_classes: Sequence[str],
    new_classes: Sequence[str],
    ignore_index: int = 255,
) -> dict[int, int] | None:
    """Join a map of pixel values to ``old_classes`` with a choice of ``new_classes``.

    Args:
        label_map: pixel value -> index in ``old_classes`` or ``ignore_index``; None
            if pixel values are such indices already.
        old_classes: all classes of the annotation.
        new_classes: those wanted, in the wanted order; all are in ``old_classes``.
        ignore_index: target of everything that is not wanted.

    Returns:
        Pixel value -> index in ``new_classes`` or ``ignore_index``; None if nothing
        changes.

    Raises:
        ValueError: if it is no map, a target of it no class, or a value no 16-bit
            number.
    """
    if label_map is None:
        if list(old_classes) == list(new_classes):
            return None
        label_map = {index: index for index in range(len(old_classes))}
    targets = {*range(len(old_classes)), ignore_index}
    is_map = isinstance(label_map, Mapping)
    wrong = {
        value: target
        for value, target in (label_map.items() if is_map else ())
        if target not in targets or not 0 <= int(value) < _NUM_VALUES
    }
    if wrong or not is_map:
        raise ValueError(
            f'label_map must be a dict, pixel values must be 0 to {_NUM_VALUES - 1}, '
            f'targets must be 0 to {len(old_classes) - 1} or {ignore_index} (ignored), '
            f'got {wrong or label_map!r:.80}'
        )
    position = {name: index for index, name in enumerate(new_classes)}
    return {
        int(value): ignore_index
        if target == ignore_index
        else position.get(old_classes[target], ignore_index)
        for value, target in label_map.items()
    }


def label_lookup(
    num_classes: int,
    label_map: Mapping[int, int] | None = None,
    reduce_zero_label: bool = False,
    ignore_index: int = 255,
) -> np.ndarray:
    """Lookup table of 16-bit pixel values.

    Args:
        num_classes: classes after everything.
        label_map: value (after the reduction) -> class or ``ignore_index``; None is
            the identity.
        reduce_zero_label: first 0 becomes ignored and other values drop by one.
        ignore_index: pixel value, and class, of ignored pixels.

    Returns:
        (65536,) int16: class, ``ignore_index`` or ``UNKNOWN``. Read-only.
    """
    items = None if label_map is None else tuple(sorted(label_map.items()))
    return _lookup(num_classes, items, reduce_zero_label, ignore_index)


@lru_cache(maxsize=64)
def _lookup(
    num_classes: int,
    items: tuple[tuple[int, int], ...] | None,
    reduce_zero_label: bool,
    ignore_index: int,
) -> np.ndarray:
    mapped = np.full(_NUM_VALUES, UNKNOWN, np.int16)
    mapped[ignore_index] = ignore_index
    if items is None:
        mapped[:num_classes] = np.arange(num_classes)
    else:
        for value, target in items:
            mapped[value] = target
    if not reduce_zero_label:
        lookup = mapped
    else:
        lookup = np.full_like(mapped, UNKNOWN)
        lookup[1:] = mapped[:-1]
        lookup[0] = lookup[ignore_index] = ignore_index
    lookup.setflags(write=False)
    return lookup
