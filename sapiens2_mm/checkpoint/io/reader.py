"""Read a checkpoint of any supported form into one dict."""

import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from mmengine.utils import digit_version
from safetensors import SafetensorError, safe_open
from safetensors import __version__ as safetensors_version
from torch import Tensor

from ..errors import CheckpointError, holds_weights_only, listed
from .download import download_url
from .file_kind import check_header, unreadable
from .hub import download_hub_file
from .limits import Budget
from .pieces import STATE, has_pieces, read_folder
from .plain_values import UnsafePickleError
from .shard_index import INDEX_SUFFIX, shards_of
from .torch_file import is_zip, read_torch_file

PERIODS = 'rope_embed.periods'  # a buffer that keeps its dtype when weights are cast
Location = str | torch.device | Callable | dict | None

# Where tools put the weights, in the order the official loader looks.
_WRAPPERS = ('state_dict', 'model', 'teacher', 'model_state_dict', 'module')
_CAN_READ = digit_version(safetensors_version) >= digit_version('0.8.0')


class _PlainOnDisk(dict):
    """A dict that is pickled without a class of ours."""

    def __reduce__(self) -> tuple:
        return OrderedDict, (), None, None, iter(self.items())


class Checkpoint(_PlainOnDisk):
    """Content of a checkpoint, and where it came from.

    Args:
        entries: ``state_dict``, ``meta`` and, of a training run, ``optimizer`` and so
            on.
        source: address as given.
    """

    def __init__(self, entries: dict, source: str) -> None:
        super().__init__(entries)
        self.source = source


class _NoTrainingState(_PlainOnDisk):
    """``meta`` of a file without one; says so to who wants to resume from it."""

    def __init__(self, source: str, entries: dict[str, str]) -> None:
        super().__init__(entries)
        self.source = source

    def __missing__(self, key: str) -> Any:
        raise holds_weights_only(self.source)


def read_checkpoint(
    source: str | Path,
    map_location: Location = 'cpu',
    dtype: torch.dtype | None = None,
) -> Checkpoint:
    """Read weights and, where the file has them, the rest of a training state.

    Args:
        source: a local file or folder, an ``http(s)://`` address, or
            ``hf://OWNER/REPO[@REVISION][/FILE]``. Read are ``.safetensors``, sharded
            safetensors by their index file, what ``torch.save`` wrote, and the folder
            of a sharded run.
        map_location: where tensors go, as for ``torch.load``.
        dtype: what floating weights are cast to; rotary periods keep theirs. Tensors
            of a safetensors file are read and cast one by one, so that the file is
            never in memory as a whole. None keeps them.

    Returns:
        A dict with at least ``state_dict`` and ``meta``.

    Raises:
        CheckpointError: if the file is damaged, unsafe, or without weights.
        FileNotFoundError: if it does not exist.
        RuntimeError: if torch cannot use the device of ``map_location``.
    """
    if isinstance(map_location, str | torch.device):
        torch.empty(0, device=map_location)  # fails by itself if there is none
    path = fetch(source)
    checkpoint, entries = _read_file(path, map_location, dtype)
    result = _unwrap(checkpoint, str(source), entries)
    for key, value in result['state_dict'].items():
        result['state_dict'][key] = cast(key, value, dtype)
    return result


def fetch(source: str | Path) -> Path:
    """The local file of ``source``, downloaded if it is an address."""
    source = str(source)
    if source.startswith('hf://'):
        return download_hub_file(source)
    if source.startswith(('http://', 'https://')):
        return download_url(source)
    if '://' in source:
        ways = 'a path, http(s)://... or hf://OWNER/REPO[@REVISION][/FILE]'
        raise CheckpointError(f'{source}: unknown kind of address; use {ways}')
    path = Path(source).expanduser()
    if path.is_dir():
        return _only_weights_of(path)
    if not path.is_file():
        raise FileNotFoundError(f'checkpoint {source} does not exist')
    return path


def _only_weights_of(folder: Path) -> Path:
    if has_pieces(folder):
        return folder
    found = sorted(folder.glob(f'*{INDEX_SUFFIX}')) or sorted(
        folder.glob('*.safetensors')
    )
    if len(found) == 1:
        return found[0]
    raise CheckpointError(
        f'{folder} is a folder with {len(found)} safetensors files; name one file, '
        'such as iter_1000.pth in the folder of a run'
    )


def cast(key: str, value: Any, dtype: torch.dtype | None) -> Any:
    """A floating weight in ``dtype``; everything else as it is."""
    if dtype is None or not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    return value if key.endswith(PERIODS) else value.to(dtype)


def _read_file(
    path: Path, map_location: Location, dtype: torch.dtype | None
) -> tuple[Any, dict[str, str]]:
    """Content and, for safetensors, the text entries of the header."""
    with explained(path):
        if path.is_dir():
            return read_folder(path, map_location), {}
        if path.name.endswith('.json'):
            return _read_shards(path, map_location, dtype), {}
        if path.suffix == '.safetensors' or _looks_like_safetensors(path):
            return _read_safetensors(path, map_location, dtype)
        return read_torch_file(path, map_location), {}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what readers raise on a damaged or unsafe file into ``CheckpointError``."""
    try:
        yield
    except UnsafePickleError as err:
        raise _unsafe(path, err) from err
    except (CheckpointError, torch.OutOfMemoryError):
        raise
    except _DAMAGE as err:
        raise unreadable(path / STATE if path.is_dir() else path, err) from err


def _unsafe(path: Path, err: UnsafePickleError) -> CheckpointError:
    return CheckpointError(
        f'{path} was not loaded: it asks for {err}, which no checkpoint needs and '
        'which may run code. If you trust its author, save its weights alone '
        '(a dict of tensors, best as .safetensors) and load that'
    )


# What readers raise on bytes that are not what they claim to be.
_DAMAGE = (
    SafetensorError,
    pickle.UnpicklingError,
    EOFError,
    RuntimeError,
    TypeError,
    AttributeError,
    LookupError,
    AssertionError,
    ArithmeticError,
    MemoryError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
)


def _looks_like_safetensors(path: Path) -> bool:
    with open(path, 'rb') as file:
        head = file.read(9)
    size = int.from_bytes(head[:8], 'little')
    return head[8:] == b'{' and 8 + size <= os.path.getsize(path)


def _read_safetensors(
    path: Path, map_location: Location, dtype: torch.dtype | None
) -> tuple[dict[str, Tensor], dict[str, str]]:
    device = map_location if isinstance(map_location, str | torch.device) else 'cpu'
    options = dict(framework='pt', device=str(device))
    if dtype is not None and _CAN_READ:
        options['backend'] = 'pread'  # pages of a mapped file would add up
    if is_zip(path):
        raise CheckpointError(f'{path} is a file of torch.save; rename it to .pth')
    check_header(path)
    budget = Budget(os.path.getsize(path))
    with safe_open(path, **options) as file:
        tensors = {}
        for key in file.keys():  # noqa: SIM118
            budget.spend_on_tensor(file.get_slice(key).get_shape(), 0)
            tensors[key] = cast(key, file.get_tensor(key), dtype)
        return tensors, file.metadata() or {}


def _read_shards(
    path: Path, map_location: Location, dtype: torch.dtype | None
) -> dict[str, Tensor]:
    shards = shards_of(path)
    tensors: dict[str, Tensor] = {}
    for name in sorted(set(shards.values())):
        shard = path.parent / name
        if not shard.is_file():
            raise CheckpointError(f'{path} names the file {name}, which is missing')
        tensors.update(_read_safetensors(shard, map_location, dtype)[0])
    lost = sorted(set(shards) - set(tensors))
    if lost:
        raise CheckpointError(
            f'{path} lists [{listed(map(repr, lost))}], which no shard holds'
        )
    return tensors


def _unwrap(checkpoint: Any, source: str, entries: dict[str, str]) -> Checkpoint:
    if isinstance(checkpoint, dict) and isinstance(checkpoint.get('state_dict'), dict):
        result = Checkpoint(checkpoint, source)
    else:
        result = Checkpoint({'state_dict': checkpoint}, source)
    weights = result['state_dict']
    while isinstance(weights, dict) and not _has_tensors(weights):
        inner = [weights[k] for k in _WRAPPERS if isinstance(weights.get(k), dict)]
        if not inner:
            break
        weights = inner[0]
    if not isinstance(weights, dict) or not _has_tensors(weights):
        keys = (
            f' keys [{listed(map(repr, weights))}]' if isinstance(weights, dict) else ''
        )
        raise CheckpointError(
            f'{source} holds no weights: expected a dict of tensors, bare or under one '
            f'of {list(_WRAPPERS)}, got a {type(weights).__name__}{keys}'
        )
    unnamed = [key for key in weights if not isinstance(key, str)]
    if unnamed:
        raise CheckpointError(
            f'{source} has weights under {listed(map(repr, unnamed))}; expected names'
        )
    result['state_dict'] = weights
    if not isinstance(result.get('meta'), dict):
        result['meta'] = _NoTrainingState(source, entries)
    return result


def _has_tensors(weights: dict) -> bool:
    return any(isinstance(value, Tensor) for value in weights.values())
