"""What can be wrong with a checkpoint, and how it is said."""

from collections.abc import Iterable

_MAX_LISTED = 8


class CheckpointError(ValueError):
    """A checkpoint cannot be read, or does not fit the model."""


def listed(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    names = list(names)
    more = len(names) - _MAX_LISTED
    text = ', '.join(names[:_MAX_LISTED])
    return f'{text}, and {more} more' if more > 0 else text
