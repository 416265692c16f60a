"""Checkpoints of sharded models: a folder with the pieces that each process wrote.

The pieces are safetensors files of ``torch.distributed.checkpoint``, which hold no
code. ``state.pth`` beside them has all the rest, and says which tensors the pieces
make up, so that a folder that lost a file is noticed.
"""

import json
import math
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import CheckpointError, listed
from .file_kind import check_header
from .limits import Budget, are_plain
from .torch_file import read_torch_file

STATE = 'state.pth'
_BATCH = 1 << 30  # bytes
_WEIGHTS = 'state_dict'
_NAMES = {  # of safetensors
    torch.float64: 'F64',
    torch.float32: 'F32',
    torch.float16: 'F16',
    torch.bfloat16: 'BF16',
    torch.int64: 'I64',
    torch.int32: 'I32',
    torch.int16: 'I16',
    torch.int8: 'I8',
    torch.uint8: 'U8',
    torch.bool: 'BOOL',
}


def has_pieces(path: str | Path) -> bool:
    """Whether ``path`` is such a folder."""
    return Path(path, STATE).is_file()


def read_state(
    folder: Path, map_location: Any = 'cpu'
) -> tuple[dict, dict[str, tuple]]:
    """What is no piece, and what the pieces make up.

    Returns:
        The entries of the checkpoint, with None in place of each sharded tensor, and
        name -> (path of keys in the entries, shape, dtype) of those. All pieces are
        there.

    Raises:
        CheckpointError: if pieces are missing or belong to another checkpoint.
    """
    content = read_torch_file(folder / STATE, map_location)
    entries, sharded = content['entries'], content['sharded']
    budget = Budget(sum(file.stat().st_size for file in folder.iterdir()))
    for file in folder.glob('*.safetensors'):
        check_header(file)
    found = _reader(folder).read_metadata().state_dict_metadata
    lost = []
    for name, (_, shape, dtype) in sharded.items():
        budget.spend_on_tensor(shape, dtype.itemsize)
        if name not in found or not _are_whole(found[name], shape):
            lost.append(name)
    if lost:
        raise CheckpointError(
            f'{folder} lacks files of the processes that wrote it: {listed(lost)} are '
            'not complete; take the folder of another iteration'
        )
    return entries, sharded


def _are_whole(piece: Any, shape: tuple[int, ...]) -> bool:
    """Whether each row of a tensor is in one piece; rows are what FSDP shares out."""
    chunks = [(*chunk.offsets, *chunk.sizes) for chunk in piece.chunks]
    if not all(are_plain(chunk) for chunk in chunks):
        return False
    end, rest = 0, shape[1:]
    for chunk in sorted(chunks):
        rows = chunk[len(shape)] if len(chunk) == 2 * len(shape) > 0 else 0
        if chunk != (end, *[0] * len(rest), rows, *rest):
            return False
        end += rows
    return tuple(piece.size) == shape == (end, *rest)


def fill(folder: Path, targets: Mapping[str, Tensor]) -> None:
    """Read tensors, or the shards of them that ``DTensor`` targets have, in place.

    Args:
        folder: checked by ``read_state``.
        targets: name -> tensor of the whole shape.
    """
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint import CheckpointException

    try:
        with warnings.catch_warnings():  # each process reads what it needs, by itself
            warnings.filterwarnings('ignore', 'torch.distributed is disabled')
            checkpoint.load(dict(targets), storage_reader=_reader(folder), no_dist=True)
    except CheckpointException as err:  # no Exception
        raise next(iter(err.failures.values()))[0] from err


def read_folder(folder: Path, map_location: Any = 'cpu') -> dict:
    """The checkpoint with whole tensors, as if one process had written it.

    Raises: as ``read_state``.
    """
    entries, sharded = read_state(folder, map_location)
    device = map_location if isinstance(map_location, str | torch.device) else 'cpu'
    for tensors in _filled(folder, sharded, device):
        for name, tensor in tensors.items():
            put(entries, sharded[name][0], tensor)
    return entries


def merge_weights(folder: Path, destination: Path) -> dict:
    """Write the weights into one safetensors file, about a GB of them in memory.

    Returns:
        ``meta`` of the checkpoint.

    Raises: as ``read_state``, and OSError if the disk is full.
    """
    entries, sharded = read_state(folder)
    of = {path: name for name, (path, _, _) in sharded.items()}
    shapes = {}
    for key, value in entries[_WEIGHTS].items():
        if isinstance(value, Tensor):
            shapes[key] = tuple(value.shape), value.dtype
        else:
            shapes[key] = sharded[of[_WEIGHTS, key]][1:]
    header, end = {}, 0
    for key, (shape, dtype) in shapes.items():
        start, end = end, end + math.prod(shape) * dtype.itemsize
        offsets = [start, end]
        header[key] = dict(dtype=_NAMES[dtype], shape=shape, data_offsets=offsets)
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(destination, 'wb') as file:
        file.write(len(text).to_bytes(8, 'little') + text)

        def write(key: str, tensor: Tensor) -> None:
            file.seek(8 + len(text) + header[key]['data_offsets'][0])
            file.write(tensor.contiguous().flatten().view(torch.uint8).numpy())

        for key, value in entries[_WEIGHTS].items():
            if isinstance(value, Tensor):
                write(key, value)
        weights = {of[path]: sharded[of[path]] for path in of if path[0] == _WEIGHTS}
        for tensors in _filled(folder, weights):
            while tensors:
                name, tensor = tensors.popitem()
                write(sharded[name][0][1], tensor)
    return entries['meta']


def put(entries: dict, path: tuple, tensor: Tensor) -> None:
    """Put a tensor in its place."""
    *outer, last = path
    for key in outer:
        entries = entries[key]
    entries[last] = tensor


def _filled(
    folder: Path, sharded: dict[str, tuple], device: str | torch.device = 'cpu'
) -> Iterator[dict[str, Tensor]]:
    """Whole tensors by name, of about ``_BATCH`` bytes at a time."""
    tensors, size = {}, 0
    for number, (name, (_, shape, dtype)) in enumerate(sharded.items(), 1):
        tensors[name] = torch.empty(shape, dtype=dtype, device=device)
        size += tensors[name].nbytes
        if size >= _BATCH or number == len(sharded):
            fill(folder, tensors)
            yield tensors
            tensors, size = {}, 0


def _reader(folder: Path) -> Any:
    from torch.distributed.checkpoint import HuggingFaceStorageReader

    return HuggingFaceStorageReader(str(folder))
