"""Write and read the checkpoint of a model whose tensors are sharded over processes.

Each process writes its shards and reads those that it needs, so that nobody has a whole
copy, and a run goes on with another number of processes. ``read_checkpoint`` reads the
folder as one process.
"""

import io
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from mmengine.dist import is_main_process
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint import (
    CheckpointException,
    DefaultSavePlanner,
    HuggingFaceStorageWriter,
    Metadata,
    SavePlan,
)
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from .io.atomic import not_written, replace_folder
from .io.pieces import STATE, fill, put, read_state
from .io.reader import Checkpoint, explained

_FILE_BYTES = 1 << 30  # of a process; a file is in memory while it is written


class ShardedSaver:
    """Writes checkpoints beside the training, one at a time, complete or not at all.

    ``save`` returns when the shards are copied to the memory of the CPU. A thread of
    each process then writes them, under a temporary name that becomes the final one
    when all have. All processes need the same file system.

    ``torch.distributed`` must have been started. Every method but ``then`` is for all
    processes together.
    """

    def __init__(self) -> None:
        self._group = torch.distributed.new_group(backend='gloo')  # of the threads
        self._pool = ThreadPoolExecutor(1, 'checkpoint')
        self._last: Future | None = None

    def save(self, checkpoint: Mapping[str, Any], folder: str | Path) -> None:
        """Begin to write a checkpoint, after the one before is done.

        Args:
            checkpoint: what mmengine saves, with ``DTensor`` where tensors are sharded.
                All else is taken from the main process.
            folder: takes the place of what has this name.

        Raises:
            OSError: if the one before could not be written.
        """
        self.wait()
        entries, tensors = _split(checkpoint)
        state = io.BytesIO()
        if is_main_process():
            names = {
                name: (path, tuple(tensor.shape), tensor.dtype)
                for name, (path, tensor) in tensors.items()
            }
            torch.save(dict(entries=entries, sharded=names), state)
        copies = DefaultStager(StagingOptions(False, False, False, False)).stage(
            {name: tensor for name, (_, tensor) in tensors.items()}
        )
        self._last = self._pool.submit(
            _write, copies, Path(folder), state.getvalue(), self._group
        )

    def then(self, function: Callable[[], None]) -> None:
        """Call a function in this process as soon as all that was saved is written."""
        before = self._last

        def call() -> None:
            before.result()
            function()

        self._last = self._pool.submit(call)

    def wait(self) -> None:
        """Wait for the end of the writing.

        Raises:
            OSError: in all processes, if one could not write; what was there before is
                as it was.
        """
        task, self._last = self._last, None
        if task is not None:
            task.result()


def load_sharded(
    folder: str | Path, model: nn.Module, optimizer: Optimizer | None = None
) -> Checkpoint:
    """Read a checkpoint, and of sharded tensors only the shards of this process.

    Args:
        folder: written by ``ShardedSaver`` with any number of processes.
        model: sharded. Tensors of its state dict, averaged or not, are sharded like
            it; what it lacks or has in another shape is read whole.
        optimizer: of the model; its states are sharded like the parameters.

    Raises:
        CheckpointError: if the folder is not complete.
    """
    folder = Path(folder)
    layouts = dict(_layouts(model, optimizer))
    with explained(folder):
        entries, sharded = read_state(folder)
        tensors = {}
        for name, (path, shape, dtype) in sharded.items():
            layout = layouts.get(path)
            if layout is None or tuple(layout.shape) != shape:
                tensors[name] = torch.empty(shape, dtype=dtype)
            else:
                tensors[name] = torch.empty_like(layout, dtype=dtype)
        fill(folder, tensors)
        for name, tensor in tensors.items():
            put(entries, sharded[name][0], tensor)
    return Checkpoint(entries, str(folder))


def _layouts(
    model: nn.Module, optimizer: Optimizer | None
) -> Iterator[tuple[tuple, Tensor]]:
    """Path of keys in a checkpoint -> a tensor that is sharded as that one is to be."""
    for key, tensor in model.state_dict().items():
        yield ('state_dict', key), tensor
        yield ('ema_state_dict', f'module.{key}'), tensor
    groups = optimizer.param_groups if optimizer else []
    parameters = [each for group in groups for each in group['params']]
    for number, parameter in enumerate(parameters):
        for key in ('exp_avg', 'exp_avg_sq', 'max_exp_avg_sq', 'momentum_buffer'):
            yield ('optimizer', 'state', number, key), parameter


def _split(checkpoint: Mapping) -> tuple[dict, dict[str, tuple[tuple, DTensor]]]:
    """The checkpoint without sharded tensors, and name -> (path, tensor) of those."""
    tensors = {}

    def without(value: Any, path: tuple) -> Any:
        if isinstance(value, DTensor):
            tensors['/'.join(map(str, path))] = path, value.detach()
            return None
        if isinstance(value, Mapping):
            return {key: without(each, (*path, key)) for key, each in value.items()}
        if isinstance(value, list):
            return [without(each, (*path, key)) for key, each in enumerate(value)]
        return value

    return without(checkpoint, ()), tensors


def _write(
    tensors: dict[str, DTensor], folder: Path, state: bytes, group: ProcessGroup
) -> None:
    size, files = 0, {}
    for name, tensor in tensors.items():
        files[name] = 1 + size // (_FILE_BYTES * group.size())
        size += tensor.numel() * tensor.itemsize
    writer = _Writer(folder, state, files)
    planner = DefaultSavePlanner(flatten_state_dict=False)
    try:
        dcp.save(tensors, storage_writer=writer, planner=planner, process_group=group)
    except CheckpointException as err:  # no Exception
        error = next(iter(err.failures.values()))[0]
        if not isinstance(error, OSError):
            raise error from err
        raise not_written(folder, error) from err


class _Writer(HuggingFaceStorageWriter):
    """Writes into a temporary folder, and moves it into its place at the end."""

    def __init__(self, folder: Path, state: bytes, files: dict[str, int]) -> None:
        self.folder, self.state = folder, state
        self.temporary = folder.with_name(f'.{folder.name}.sharded.tmp')
        super().__init__(str(self.temporary), files, save_distributed=True)

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """In one process, before the others write."""
        shutil.rmtree(self.temporary)  # and what a run that was killed left there
        self.temporary.mkdir()
        return super().prepare_global_plan(plans)

    def finish(self, metadata: Metadata, results: list) -> None:
        """In the same process, after all have written."""
        (self.temporary / STATE).write_bytes(self.state)
        replace_folder(self.temporary, self.folder)
