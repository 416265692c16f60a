"""What can be wrong with a checkpoint, and how it is said."""

from collections.abc import Iterable
from pathlib import Path

_MAX_LISTED = 8


class CheckpointError(ValueError):
    """A checkpoint cannot be read, or does not fit the model."""


def listed(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    names = list(names)
    more = len(names) - _MAX_LISTED
    text = ', '.join(names[:_MAX_LISTED])
    return f'{text}, and {more} more' if more > 0 else text


def unreadable(path: Path, err: Exception) -> CheckpointError:
    """The error for a file whose bytes are not what they claim to be."""
    return CheckpointError(
        f'cannot read {path}: damaged or no checkpoint ({path.stat().st_size} bytes, '
        f'{type(err).__name__}: {err}); get the file again'
    )


def holds_weights_only(source: str) -> CheckpointError:
    """The error for a file that a run is to be resumed from."""
    return CheckpointError(
        f'cannot resume from {source}: it holds weights only, no optimizer state, '
        'schedule or iteration; start from it by load_from instead'
    )
