"""Renaming of state dict keys that works in both directions."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ..errors import CheckpointError, listed, shown

_FIELD = re.compile(r'\{(\w)(?:\*(\d+))?\}')


def _expand(pattern: str, fields: Mapping[str, str]) -> str:
    def value(match: re.Match) -> str:
        name, factor = match.groups()
        return str(int(fields[name]) * int(factor)) if factor else fields[name]

    return _FIELD.sub(value, pattern)


def _compile(pattern: str) -> re.Pattern:
    parts, end = [], 0
    for match in _FIELD.finditer(pattern):
        name = match[1]
        values = 'weight|bias' if name == 'p' else '[0-9]{1,4}'
        parts += [re.escape(pattern[end : match.start()]), f'(?P<{name}>{values})']
        end = match.end()
    return re.compile(''.join(parts) + re.escape(pattern[end:]))


def _match(regex: re.Pattern, pattern: str, key: str) -> dict[str, str] | None:
    match = regex.fullmatch(key)
    if match is None:
        return None
    fields = match.groupdict()
    for name, factor in _FIELD.findall(pattern):
        if factor:
            number, rest = divmod(int(fields[name]), int(factor))
            if rest:
                return None
            fields[name] = str(number)
    return fields


class Rule(Protocol):
    """Moves some keys of ``state`` to ``out``, in either direction."""

    def forward(self, state: dict[str, Tensor], out: dict[str, Tensor]) -> None: ...

    def backward(self, state: dict[str, Tensor], out: dict[str, Tensor]) -> None: ...


def _rename(
    source: str, target: str, state: dict[str, Tensor], out: dict[str, Tensor]
) -> None:
    regex = _compile(source)
    for key in list(state):
        fields = _match(regex, source, key)
        if fields is not None:
            out[_expand(target, fields)] = state.pop(key)


@dataclass(frozen=True)
class Rename:
    """One key on each side.

    In a pattern ``{n}`` is a number, ``{n*3}`` a number that is three times the other
    side's ``{n}``, and ``{p}`` is ``weight`` or ``bias``.
    """

    left: str
    right: str

    def forward(self, state: dict[str, Tensor], out: dict[str, Tensor]) -> None:
        _rename(self.left, self.right, state, out)

    def backward(self, state: dict[str, Tensor], out: dict[str, Tensor]) -> None:
        _rename(self.right, self.left, state, out)


@dataclass(frozen=True)
class SplitRows:
    """One tensor on the left whose rows are, in order, those of the tensors right."""

    left: str
    right: tuple[str, ...]

    def forward(self, state: dict[str, Tensor], out: dict[str, Tensor]) -> None:
        regex = _compile(self.left)
        for key in list(state):
            fields = _match(regex, self.left, key)
            if fields is None:
                continue
            rows = state.pop(key).chunk(len(self.right))
            for pattern, part in zip(self.right, rows, strict=True):
                out[_expand(pattern, fields)] = part.contiguous()

    def backward(self, state: dict[str, Tensor], out: dict[str, Tensor]) -> None:
        regex = _compile(self.right[0])
        for key in list(state):
            fields = _match(regex, self.right[0], key)
            if fields is None:
                continue
            keys = [_expand(pattern, fields) for pattern in self.right]
            missing = [k for k in keys if k not in state]
            if missing:
                raise CheckpointError(f'{key} is there, but {missing} is missing')
            out[_expand(self.left, fields)] = torch.cat([state.pop(k) for k in keys])


@dataclass(frozen=True)
class Prefix:
    """All keys that start with ``left``, which becomes ``right``."""

    left: str
    right: str

    def forward(self, state: dict[str, Tensor], out: dict[str, Tensor]) -> None:
        for key in [key for key in state if key.startswith(self.left)]:
            out[self.right + key[len(self.left) :]] = state.pop(key)

    def backward(self, state: dict[str, Tensor], out: dict[str, Tensor]) -> None:
        Prefix(self.right, self.left).forward(state, out)


class KeyMap:
    """Two names of the same weights.

    Args:
        left: name of one layout, used in messages.
        right: name of the other.
        rules: each key must be matched by one of them.
    """

    def __init__(self, left: str, right: str, rules: Iterable[Rule]) -> None:
        self.left, self.right = left, right
        self.rules = tuple(rules)

    def forward(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights named as on the left -> named as on the right.

        Raises:
            CheckpointError: if a key belongs to no rule.
        """
        return self._apply(state, 'forward', self.left, self.right)

    def backward(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The inverse of ``forward``."""
        return self._apply(state, 'backward', self.right, self.left)

    def _apply(
        self, state: Mapping[str, Tensor], direction: str, source: str, target: str
    ) -> dict[str, Tensor]:
        rest, out = dict(state), {}
        try:
            for rule in self.rules:
                getattr(rule, direction)(rest, out)
        except (RuntimeError, TypeError) as err:  # of torch: shapes that do not fit
            raise CheckpointError(f'no {source} weights: {shown(err)}') from err
        if rest:
            raise CheckpointError(
                f'{len(rest)} keys are no {source} names and cannot become {target} '
                f'ones: {listed(sorted(rest))}'
            )
        return out
