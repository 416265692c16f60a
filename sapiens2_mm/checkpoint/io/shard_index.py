"""The index file of weights that are spread over several safetensors files."""

import json
from pathlib import Path

from ..errors import CheckpointError, shown
from .file_kind import unreadable

INDEX_SUFFIX = '.safetensors.index.json'
MAX_INDEX_BYTES = 1 << 21  # some 20,000 weights


def shards_of(path: Path) -> dict[str, str]:
    """Weight -> name of the file beside the index file ``path`` that holds it.

    Raises:
        CheckpointError: if ``path`` is no such index, or names a file elsewhere.
    """
    if path.stat().st_size > MAX_INDEX_BYTES:
        raise CheckpointError(
            f'{path} is no index; it has over {MAX_INDEX_BYTES} bytes'
        )
    try:
        index = json.loads(path.read_text(encoding='utf-8'))
    except (ValueError, RecursionError) as err:
        raise unreadable(path, err, '.json') from err
    shards = index.get('weight_map') if isinstance(index, dict) else None
    if not isinstance(shards, dict):
        raise CheckpointError(f'{path} has no "weight_map"; it is no safetensors index')
    for name in shards.values():
        if type(name) is not str or Path(name).name != name or '\\' in name:
            raise CheckpointError(
                f'{path} names {shown(repr(name))}, a file outside its folder'
            )
        if not name.endswith('.safetensors') or len(name.encode()) > 200:
            raise CheckpointError(f'{path} names {shown(name)}, no safetensors file')
    return shards
