"""Classes that change places in a mirrored picture."""

from collections.abc import Iterable, Sequence
from numbers import Integral

import numpy as np


def mirrored_ids(
    pairs: Sequence[Sequence[int]], num_classes: int, ignore_index: int | None = None
) -> np.ndarray:
    """Class that each class shows in a mirrored picture.

    Args:
        pairs: of different class ids, each class in one pair at most.
        num_classes: of the data or the model.
        ignore_index: may be the partner of a class, whose mirror image is no class.

    Returns:
        (num_classes,) int64; classes in no pair map to themselves.

    Raises:
        ValueError: for anything but such pairs; names the pair.
    """
    pairs = list(pairs) if isinstance(pairs, Iterable) else [pairs]
    ids = np.arange(num_classes)
    seen = {ignore_index}
    for pair in pairs:
        own = [each for each in np.ravel(pair).tolist() if each != ignore_index]
        if (
            np.shape(pair) != (2,)
            or len({*own}) < len(own)
            or not all(isinstance(i, Integral) and 0 <= i < num_classes for i in own)
            or seen & {*own}
        ):
            raise ValueError(
                f'flip_pairs: {pair!r} must be two different ids of the {num_classes} '
                f'classes that are in no other of {pairs!r:.200}; names go into '
                "metainfo['swap_classes'] of the dataset"
            )
        seen |= {*own}
        for source, target in (pair, pair[::-1]):
            if source != ignore_index:
                ids[source] = target
    return ids
