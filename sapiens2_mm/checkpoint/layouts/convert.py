"""Rewrite a checkpoint in another layout."""

import json
from pathlib import Path
from tempfile import NamedTemporaryFile

import torch
from safetensors.torch import save_file
from torch import Tensor

from ..errors import CheckpointError, shown
from ..io.atomic import replacing, write_atomically
from ..io.pieces import has_pieces, merge_weights
from ..io.reader import Checkpoint, cast, explained, read_checkpoint
from .names import LAYOUTS, official_to_ours, to_transformers
from .official import OfficialWeights, check_complete, to_official
from .other_forms import check_plain_weights
from .transformers_config import processor_config, transformers_config

_FILES = ('.safetensors', '.pth', '.pt', '.bin', '.ckpt', '.json')


def convert_checkpoint(
    source: str | Path,
    destination: str | Path,
    to: str,
    dtype: torch.dtype | None = None,
    task: str | None = None,
    image_size: tuple[int, int] = (1024, 768),
) -> dict[str, str]:
    """Write a checkpoint as safetensors with the names of another layout.

    Args:
        source: any form ``read_checkpoint`` reads, in any layout.
        destination: a ``.safetensors`` file. For ``transformers`` it may be a folder,
            which then gets ``model.safetensors``, ``config.json`` and
            ``preprocessor_config.json`` and can be given to ``from_pretrained`` of
            ``AutoModel`` and ``AutoImageProcessor``. Keypoints and classes keep the
            names that a run of ours knows.
        to: ``'official'``, ``'ours'`` or ``'transformers'``.
        dtype: of the floating weights; None keeps theirs. Rotary periods keep theirs.
        task: one of ``names.TASKS``. Needed where the keys do not tell, in a file of
            transformers with other numbers of channels than the released ones;
            ``'pretrain'`` takes the backbone alone.
        image_size: (height, width) in pixels that the model was trained with, which
            no file tells; for the folder of transformers.

    Returns:
        The text entries of the written header: layout, arch, task, source and sizes.

    Raises:
        CheckpointError: if the checkpoint is no Sapiens2 model, or the layout cannot
            hold it.
    """
    if to not in LAYOUTS:
        raise CheckpointError(f'unknown layout {to!r}; use one of {list(LAYOUTS)}')
    destination = Path(destination)
    as_folder = to == 'transformers' and destination.suffix not in _FILES
    if destination.suffix != '.safetensors' and not as_folder:
        raise CheckpointError(f'{destination} must end with .safetensors')
    if destination.exists() and destination.is_dir() != as_folder:
        kind = 'file' if as_folder else 'folder'
        raise CheckpointError(f'{destination} is a {kind} already; name another one')
    checkpoint = _read(source, destination.parent)
    check_plain_weights(checkpoint['state_dict'], str(source))
    try:
        weights = to_official(checkpoint['state_dict'], str(source), task)
        check_complete(weights, str(source))
        state = _in_layout(weights, to)
        if dtype is not None:
            state = {key: cast(key, value, dtype) for key, value in state.items()}
        metainfo = checkpoint['meta'].get('dataset_meta') or {}
        config = {}
        if to == 'transformers':
            config = transformers_config(weights, image_size, metainfo)
        dtypes = {str(v.dtype).removeprefix('torch.') for v in state.values()}
        config['dtype'] = dtypes.pop() if len(dtypes) == 1 else 'float32'
        entries = {
            'format': 'pt',
            'layout': to,
            'arch': weights.arch(),
            'task': weights.task,
            'source': Path(source).name if Path(source).exists() else str(source),
            **{name: str(value) for name, value in weights.sizes().items()},
        }
    except CheckpointError:
        raise
    except _WRONG_SHAPES as err:
        text = f'{source} has weights of wrong shapes or names'
        raise CheckpointError(f'{text} ({type(err).__name__}: {shown(err)})') from err
    path = destination / 'model.safetensors' if as_folder else destination
    with replacing(path) as temporary:
        save_file(_without_shared_memory(state), temporary, metadata=entries)
    if as_folder:
        processor = processor_config(weights.task, image_size)
        files = {'config.json': config, 'preprocessor_config.json': processor}
        for name, content in files.items():
            text = json.dumps(content, indent=2) + '\n'
            write_atomically(destination / name, text.encode())
    return entries


def _read(source: str | Path, scratch: Path) -> Checkpoint:
    """The checkpoint; weights of a sharded run are in a file, not in memory."""
    if not has_pieces(source):
        return read_checkpoint(source)
    scratch.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=scratch, suffix='.safetensors') as file:
        with explained(Path(source)):
            meta = merge_weights(Path(source), Path(file.name))
        checkpoint = read_checkpoint(file.name)  # stays mapped
    checkpoint['meta'] = meta
    return checkpoint


# What follows from a weight that is there and has other dimensions than expected.
_WRONG_SHAPES = (LookupError, ValueError, TypeError, ArithmeticError, RuntimeError)


def _in_layout(weights: OfficialWeights, to: str) -> dict[str, Tensor]:
    if to == 'official':
        return weights.state
    if to == 'ours':
        return official_to_ours(weights.task).forward(weights.state)
    return to_transformers(weights.state, weights.task)


def _without_shared_memory(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same weights, contiguous and each in memory of its own, for safetensors."""
    out, seen = {}, set()
    for key, value in state.items():
        value = value.contiguous()
        memory = value.untyped_storage().data_ptr()
        out[key] = value.clone() if memory in seen else value
        seen.add(memory)
    return out
