"""Counters on the model's device, whose values the host knows too."""

from torch import Tensor


def read_count(counter: Tensor) -> int:
    """Value of a counter.

    To ask a GPU means to wait for all its work. That is done only if the counter was
    changed by others than ``set_count``, by loading a checkpoint, say.
    """
    version, value = getattr(counter, 'known_to_host', (None, 0))
    if version != counter._version:
        value = int(counter)
        counter.known_to_host = counter._version, value
    return value


def set_count(counter: Tensor, value: int) -> None:
    """Change a counter."""
    counter.fill_(value)
    counter.known_to_host = counter._version, value
