"""What can be wrong with a checkpoint, and how it is said."""

from collections.abc import Iterable

_MAX_LISTED = 8
_MAX_CHARACTERS = 200


class CheckpointError(ValueError):
    """A checkpoint cannot be read, or does not fit the model."""


def shown(text: object) -> str:
    """Text of a file for a message: one line, without control codes, cut if long."""
    text = str(text)
    more = len(text) - _MAX_CHARACTERS
    text = text[:_MAX_CHARACTERS]
    if not text.isprintable():
        text = ascii(text)[1:-1]
    return f'{text}... ({more} more characters)' if more > 0 else text


def listed(names: Iterable[object]) -> str:
    """The first names, and how many more there are."""
    names = list(names)
    more = len(names) - _MAX_LISTED
    text = ', '.join(map(shown, names[:_MAX_LISTED]))
    return f'{text}, and {more} more' if more > 0 else text


def holds_weights_only(source: str) -> CheckpointError:
    """The error for a file that a run is to be resumed from."""
    return CheckpointError(
        f'cannot resume from {source}: it holds weights only, no optimizer state, '
        'schedule or iteration; start from it by load_from instead'
    )
