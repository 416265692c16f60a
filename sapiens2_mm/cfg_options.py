"""Settings of a config on the command line."""

import re
from typing import Any

from mmengine.config import DictAction

# Blanks inside a word, not those beside a comma, a bracket or a quotation mark.
_INSIDE = re.compile(r'(?<=[^\s,\[(\'"]) +(?=[^\s,\])\'"])')
_BLANK = '\0'


class CfgOptions(DictAction):
    """mmengine's ``KEY=VALUE``, with the blanks that belong to a value.

    ``DictAction`` drops them all: from metrics (``coco/AP (M)``), paths, class names.
    """

    @staticmethod
    def _parse_iterable(val: str) -> Any:
        kept = _INSIDE.sub(lambda blanks: _BLANK * len(blanks[0]), val)
        return _with_blanks(DictAction._parse_iterable(kept))


def _with_blanks(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_with_blanks(item) for item in value)
    return value.replace(_BLANK, ' ') if isinstance(value, str) else value
