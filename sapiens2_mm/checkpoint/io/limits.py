"""How much a file may ask for, so that reading it takes bounded time and memory."""

import math
import pickle
from collections.abc import Iterable, Sequence
from typing import Any

_MAX_DEPTH = 64
_MAX_DIMS = 16
_MAX_NUMBER = 1 << 62
_KEY_TYPES = (str, int, bool, type(None))


class Budget:
    """What reading one file may still cost.

    Operations and bytes of tensors are given by the size of the file. An operation
    makes an object of about 100 bytes: objects take as much memory as the file, and
    60 MB. Tensors may show the bytes of the file twice, as tied weights do, and no
    more: each takes memory of its own once it is cast or copied.
    """

    def __init__(self, file_bytes: int) -> None:
        self.file_bytes = file_bytes
        self.max_operations = self.operations = 600_000 + file_bytes // 100
        self.tensor_bytes = 2 * file_bytes + (1 << 20)

    def spend(self, operations: int) -> None:
        self.operations -= operations
        if self.operations < 0:
            raise pickle.UnpicklingError(
                f'reading it takes more than {self.max_operations} operations'
            )

    def spend_on_call(self, args: tuple) -> None:
        """Pay for an object, and a copy of each argument."""
        self.spend(20)
        for value in args:
            if isinstance(value, str | bytes):
                self.spend(len(value) // 100)
            elif isinstance(value, dict | list | tuple | set | frozenset):
                self.spend(len(value))

    def spend_on_tensor(self, size: Sequence, itemsize: int) -> int:
        """Pay for a tensor with memory of its own; returns its number of elements."""
        self.spend(20)
        if len(size) > _MAX_DIMS or not are_plain(size):
            raise pickle.UnpicklingError(f'a tensor with a size of {len(size)} numbers')
        count = math.prod(size)
        self.tensor_bytes -= count * itemsize
        if self.tensor_bytes < 0:
            raise pickle.UnpicklingError('its tensors are larger than the file')
        return count


def are_plain(numbers: Iterable) -> bool:
    """Whether all are ints that torch can take as sizes."""
    return all(type(n) is int and 0 <= n < _MAX_NUMBER for n in numbers)


def check_keys(keys: Iterable) -> None:
    """Refuse what takes long to hash; keys are names or numbers."""
    for key in keys:
        if type(key) not in _KEY_TYPES:
            raise pickle.UnpicklingError(f'a key that is a {type(key).__name__}')
        if isinstance(key, int) and not -_MAX_NUMBER < key < _MAX_NUMBER:
            raise pickle.UnpicklingError('a key that is a number of over 62 bits')


def check_nesting(value: Any, max_values: int) -> None:
    """Refuse values that are deep, hold themselves, or hold others again and again.

    Whoever copies, compares or prints them goes through them as a tree, which may have
    ``max_values`` values.
    """
    _, count = _measure(value, 0, {})
    if count > max_values:
        raise pickle.UnpicklingError('its values hold one another again and again')


def _measure(value: Any, level: int, known: dict) -> tuple[int, int]:
    """Levels and values of a tree."""
    if not isinstance(value, dict | list | tuple | set | frozenset):
        return 0, 1
    if id(value) not in known and level <= _MAX_DEPTH:
        inner = list(dict.values(value) if isinstance(value, dict) else value)
        inner.append(getattr(value, '_metadata', None))  # of torch, in an OrderedDict
        parts = [_measure(part, level + 1, known) for part in inner]
        levels, counts = zip(*parts, strict=True)
        known[id(value)] = 1 + max(levels), 1 + sum(counts)
    levels, count = known.get(id(value), (1, 1))
    if level + levels > _MAX_DEPTH:
        raise pickle.UnpicklingError(f'its values nest over {_MAX_DEPTH} levels')
    return levels, count
