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
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, BinaryIO

import torch
from torch import Tensor, UntypedStorage
from torch.serialization import (
    MAGIC_NUMBER,
    PROTOCOL_VERSION,
    _get_restore_location,
)
from torch.storage import TypedStorage

from ..errors import CheckpointError
from .limits import Budget
from .plain_values import Script
from .unpickler import RestrictedUnpickler

_MAX_DIRECTORY = 1 << 24
# Record of torch.export, up to torch 2.7, that is a file of torch.save itself.
_EXPORTED = 'serialized_state_dict.pt'
# What is read of the records; the code of a program may be compressed.
_READ = ('data', 'byteorder', _EXPORTED)


def is_zip(path: Path) -> bool:
    """Whether ``torch.save`` wrote it, whatever its name is."""
    with open(path, 'rb') as file:
        return file.read(4) == b'PK\x03\x04'


def read_torch_file(path: Path, map_location: Any) -> Any:
    """Content of a file of ``torch.save``, or the weights of a program.

    Of programs of TorchScript and, up to torch 2.7, torch.export the weights are read
    under the names they had in the module; no code of theirs is run or compiled.

    Raises:
        CheckpointError: if it is one of another kind.
        UnsafePickleError: if it asks for more than plain data.
        UnpicklingError: if sizes and records contradict each other, or it would take
            time or memory without bound.
    """
    place = _get_restore_location(map_location)
    with open(path, 'rb') as file:
        if not is_zip(path):
            return _read_old(path, file, place)
        value = _read_zip(path, file, place)
    return dict(_script_weights(value)) if isinstance(value, Script) else value


def _script_weights(script: Script, prefix: str = '') -> Iterator[tuple[str, Tensor]]:
    for name, value in script.items():
        if isinstance(value, Tensor):
            yield f'{prefix}{name}', value
        elif isinstance(value, Script):
            yield from _script_weights(value, f'{prefix}{name}.')


def _typed(storage: UntypedStorage, dtype: torch.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def _read_zip(path: Path, file: BinaryIO, place: Any, offset: int = 0) -> Any:
    """Content of a zip file that begins at ``offset`` of the file ``path``."""
    records, archive = _records(path, file)
    if _EXPORTED in records and not offset:
        inner = records[_EXPORTED]
        part = io.BytesIO(archive.read(inner))
        return _read_zip(path, part, place, _start(file, inner))
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
            start = offset + _start(file, record)
            storage = whole[start : start + size]
            if start % dtype.itemsize:  # in a file inside another
                storage = storage.clone()
            if order.decode() != sys.byteorder:
                storage.byteswap(dtype)
            storages[key] = _typed(place(storage, location), dtype)
        return storages[key]

    pickled = io.BytesIO(archive.read(records['data.pkl']))
    return RestrictedUnpickler(pickled, budget, read_storage).load()


def _start(file: BinaryIO, record: zipfile.ZipInfo) -> int:
    """Where the bytes of a record begin."""
    file.seek(record.header_offset + 26)
    return record.header_offset + 30 + sum(struct.unpack('<HH', file.read(4)))


def _records(path: Path, file: BinaryIO) -> tuple[dict, zipfile.ZipFile]:
    """Records of the archive by their names, without its outer folder if any."""
    directory = zipfile._EndRecData(file)  # of the records, read as a whole
    if directory is None or directory[zipfile._ECD_SIZE] > _MAX_DIRECTORY:
        raise UnpicklingError('a zip file without its end, or with too many records')
    archive = zipfile.ZipFile(file)
    found = archive.infolist()
    records = {r.filename.partition('/')[2] or r.filename: r for r in found}
    if 'archive_format' in records:
        raise CheckpointError(f'{path} is a torch.export program, no weight file')
    found.sort(key=lambda record: record.header_offset)
    apart = all(
        one.header_offset + one.compress_size < other.header_offset
        for one, other in pairwise(found)
    )
    read = [r for name, r in records.items() if name.startswith(_READ)]
    plain = all(not r.compress_type and r.file_size == r.compress_size for r in read)
    if len(records) != len(found) or not plain or not apart:
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
