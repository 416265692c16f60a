"""Which tar shards there are."""

from collections.abc import Sequence
from logging import WARNING
from pathlib import Path

import braceexpand
from mmengine.logging import print_log

from ..io.folder import list_images


def list_shards(shards: str | Sequence[str]) -> list[str]:
    """Names of the shards. The log says how many, and if some are missing.

    Args:
        shards: a folder, searched at any depth for ``.tar``; a path, command or URL
            with ``{000..123}`` ranges; or a list of such.

    Raises:
        FileNotFoundError: if the folder holds none.
        ValueError: if the names are those of no file.
    """
    names = _expand(shards)
    missing = [name for name in names if ':' not in name and not Path(name).exists()]
    if len(missing) == len(names):
        raise ValueError(
            f'TarShardDataset: shards={shards!r} names no file that exists; check the '
            'path and the range'
        )
    print_log(f'pretraining on {len(names)} shards', logger='current')
    if missing:
        print_log(
            f'{len(missing)} of {len(names)} shards are missing, such as {missing[0]}; '
            'they will be passed over',
            logger='current',
            level=WARNING,
        )
    return names


def _expand(shards: str | Sequence[str]) -> list[str]:
    if not isinstance(shards, str):
        return [name for entry in shards for name in _expand(entry)]
    if not Path(shards).is_dir():
        return list(braceexpand.braceexpand(shards))
    return list_images(shards, suffixes=('.tar',))
