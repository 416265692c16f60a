"""Tell what a file is that cannot be read as a checkpoint."""

import json
import os
import zipfile
from pathlib import Path
from typing import BinaryIO

from ..errors import CheckpointError, shown

_HTML = (b'<!doctype html', b'<html', b'<head', b'<body')
_LFS = b'version https://git-lfs'
_MAX_HEADER = 100_000_000  # of safetensors
_MAX_HEADER_OF_MODEL = 1 << 23  # bytes, of some 80,000 tensors


def unreadable(
    path: Path, err: Exception, suffix: str | None = None
) -> CheckpointError:
    """The error for a file whose bytes are not what they claim to be."""
    kind = other_kind(path, suffix or path.suffix) or 'damaged or no checkpoint'
    return CheckpointError(
        f'cannot read {path}: {kind} ({path.stat().st_size} bytes, '
        f'{type(err).__name__}: {shown(err)}); get the file again'
    )


def other_kind(path: Path, suffix: str) -> str | None:
    """What a file is that is no complete checkpoint; None if it may be one.

    Args:
        path: the file.
        suffix: of the name that it has or will have.
    """
    with open(path, 'rb') as file:
        head = file.read(512)
        start = head.lstrip(b'\xef\xbb\xbf \t\r\n').lower()
        if not head:
            return 'an empty file'
        if start.startswith(_HTML):
            return 'a page of HTML, as servers send in place of a file'
        if start.startswith(_LFS):
            return 'a pointer of git-lfs in place of the file; run `git lfs pull`'
        if head.startswith(b'PK\x03\x04'):
            if not zipfile.is_zipfile(file):
                return 'the first part of a zip file of torch.save'
        elif head[8:9] == b'{':
            size = _safetensors_bytes(file)
            if size > os.path.getsize(path):
                return f'the first part of a safetensors file of {size} bytes'
        elif suffix != '.json' and head.isascii() and _is_text(head):
            return f'a text that begins with {shown(head.decode())[:60]!r}'
        elif suffix != '.json' and not head.startswith(b'\x80'):  # of a pickle
            return f'no checkpoint; it begins with {head[:8]!r}'
    return None


def check_header(path: Path) -> None:
    """Refuse a safetensors file whose header its reader would take long for.

    Raises:
        CheckpointError: if it is longer than those of models.
    """
    with open(path, 'rb') as file:
        header = int.from_bytes(file.read(8), 'little')
    if _MAX_HEADER_OF_MODEL < header < os.path.getsize(path):
        raise CheckpointError(f'{path} has a header of {header} bytes; it is no model')


def _is_text(head: bytes) -> bool:
    return all(code >= 32 or code in b'\t\r\n' for code in head)


def _safetensors_bytes(file: BinaryIO) -> int:
    """How long the header says that the file is; 0 if it says nothing."""
    file.seek(0)
    length = int.from_bytes(file.read(8), 'little')
    header = file.read(min(length, _MAX_HEADER))
    if len(header) < length:
        return 8 + length if length < _MAX_HEADER else 0
    try:
        entries = json.loads(header).values()
        ends = [e['data_offsets'][1] for e in entries if 'data_offsets' in e]
        return 8 + length + max(ends, default=0)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return 0
