"""The index file of weights that are spread over several safetensors files."""

import json
from pathlib import Path

from ..errors import CheckpointError, unreadable

INDEX_SUFFIX = '.safetensors.index.json'


def shards_of(path: Path) -> dict[str, str]:
    """Weight -> name of the file beside the index file ``path`` that holds it.

    Raises:
        CheckpointError: if ``path`` is no such index, or names a file elsewhere.
    """
    try:
        index = json.loads(path.read_text(encoding='utf-8'))
    except ValueError as err:
        raise unreadable(path, err) from err
    shards = index.get('weight_map') if isinstance(index, dict) else None
    if not isinstance(shards, dict):
        raise CheckpointError(f'{path} has no "weight_map"; it is no safetensors index')
    outside = [n for n in shards.values() if type(n) is not str or Path(n).name != n]
    if outside:
        raise CheckpointError(f'{path} names {outside[0]!r}, a file outside its folder')
    return shards
