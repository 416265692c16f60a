"""Read what ``torch.save`` wrote, in its two forms.

Not by ``torch.load``: that reads records, storages and archives of other kinds as the
file says. Here the sizes that a file claims are compared with its records before
anything is touched. A zip file is mapped; what is not used is not read.
"""

import io
import os
import struct
import sys
import zipfile
from itertools import pairwise
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, BinaryIO

import torch
from torch import UntypedStorage
from torch.serialization import (
    MAGIC_NUMBER,
    PROTOCOL_VERSION,
    _get_restore_location,
)
from torch.storage import TypedStorage

from ..errors import CheckpointError
from .limits import Budget
from .unpickler import RestrictedUnpickler

_MAX_DIRECTORY = 1 << 24
# Record that tells what else is written as a zip file.
_PROGRAMS = {'constants.pkl': 'TorchScript', 'archive_format': 'torch.export'}


def is_zip(path: Path) -> bool:
    """Whether ``torch.save`` wrote it, whatever its name is."""
    with open(path, 'rb') as file:
        return file.read(4) == b'PK\x03\x04'


def read_torch_file(path: Path, map_location: Any) -> Any:
    """Content of a file of ``torch.save``.

    Raises:
        CheckpointError: if it is one of another kind.
        UnsafePickleError: if it asks for more than plain data.
        UnpicklingError: if sizes and records contradict each other, or it would take
            time or memory without bound.
    """
    place = _get_restore_location(map_location)
    with open(path, 'rb') as file:
        read = _read_zip if is_zip(path) else _read_old
        return read(path, file, place)


def _typed(storage: UntypedStorage, dtype: torch.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def _read_zip(path: Path, file: BinaryIO, place: Any) -> Any:
    records, archive = _records(path, file)
    budget = Budget(os.path.getsize(path))
    order = archive.read(records['byteorder']) if 'byteorder' in records else b'little'
    whole = UntypedStorage.from_file(str(path), False, budget.file_bytes)
    storages: dict[str, TypedStorage] = {}

    def read_storage(dtype: torch.dtype, key: str, location: str, count: int):
        size, record = count * dtype.itemsize, records.get(f'data/{key}')
        available = record.file_size if record else 0
        if size > available:
            raise UnpicklingError(
                f'storage {key!r:.50} has {available} bytes, not {size}'
            )
        if key not in storages:
            file.seek(record.header_offset + 26)
            start = record.header_offset + 30 + sum(struct.unpack('<HH', file.read(4)))
            storage = whole[start : start + size]
            if order.decode() != sys.byteorder:
                storage.byteswap(dtype)
            storages[key] = _typed(place(storage, location), dtype)
        return storages[key]

    pickled = io.BytesIO(archive.read(records['data.pkl']))
    return RestrictedUnpickler(pickled, budget, read_storage).load()


def _records(path: Path, file: BinaryIO) -> tuple[dict, zipfile.ZipFile]:
    """Records of the archive by their names without its outer folder."""
    directory = zipfile._EndRecData(file)  # of the records, read as a whole
    if directory is None or directory[zipfile._ECD_SIZE] > _MAX_DIRECTORY:
        raise UnpicklingError('a zip file without its end, or with too many records')
    archive = zipfile.ZipFile(file)
    found = archive.infolist()
    records = {record.filename.partition('/')[2]: record for record in found}
    for record, kind in _PROGRAMS.items():
        if record in records:
            raise CheckpointError(f'{path} is a {kind} program, no weight file')
    found.sort(key=lambda record: record.header_offset)
    apart = all(
        one.header_offset + one.file_size < other.header_offset
        for one, other in pairwise(found)
    )
    if len(records) != len(found) or any(r.compress_type for r in found) or not apart:
        raise CheckpointError(
            f'{path} has compressed or repeated records; save it anew'
        )
    return records, archive


def _read_old(path: Path, file: BinaryIO, place: Any) -> Any:
    """The form before torch 1.6: pickles, then the bytes of the storages."""
    budget = Budget(os.path.getsize(path))
    storages: dict[str, TypedStorage] = {}
    rest = budget.file_bytes

    def read_storage(dtype: torch.dtype, key: str, location: str, count: int):
        nonlocal rest
        if key not in storages:
            rest -= count * dtype.itemsize
            if rest < 0:
                raise UnpicklingError('storages that are larger than the file')
            storage = UntypedStorage(count * dtype.itemsize)
            storages[key] = _typed(place(storage, location), dtype)
        return storages[key]

    for expected in (MAGIC_NUMBER, PROTOCOL_VERSION):
        if RestrictedUnpickler(file, budget).load() != expected:
            raise UnpicklingError('no file of torch')
    RestrictedUnpickler(file, budget).load()  # about the machine it was written on
    value = RestrictedUnpickler(file, budget, read_storage).load()
    keys = RestrictedUnpickler(file, budget).load()
    if set(keys) != set(storages):
        raise UnpicklingError('the bytes of some storages are missing')
    for key in keys:
        storage = storages[key]
        storage._untyped_storage._set_from_file(
            file, file.tell(), True, storage.dtype.itemsize
        )
    return value
