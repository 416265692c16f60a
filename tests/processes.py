"""Run a function of a test in several processes that belong together."""

import gc
import importlib.util
import inspect
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.multiprocessing import start_processes

# Forked from a process that has imported all this and run nothing: a fork of the one
# that runs the tests would inherit locks that its threads hold, and its garbage.
multiprocessing.set_forkserver_preload(
    ['torch.distributed.fsdp', 'torch.distributed.checkpoint', 'sapiens2_mm.engine']
)


def run_processes(function: Callable, folder: Path, count: int, *args: Any) -> None:
    """Call ``function(rank, folder, *args)`` in ``count`` processes joined by gloo.

    Their current folder, and what else is no argument, are those of the first call of a
    session.

    Raises:
        ProcessRaisedException: with the traceback of the process that failed first.
    """
    (folder / 'store').unlink(missing_ok=True)
    # The module of a test, as pytest imports it, cannot be imported by its name.
    place = inspect.getfile(function), function.__name__
    start_processes(
        _join, (place, folder, count, *args), count, start_method='forkserver'
    )


def _join(
    rank: int, place: tuple[str, str], folder: Path, count: int, *args: Any
) -> None:
    spec = importlib.util.spec_from_file_location('module_of_test', place[0])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, place[1])
    torch.set_num_threads(1)
    os.environ['LOCAL_RANK'] = str(rank)  # asked for by mmengine
    store = f'file://{folder}/store'
    torch.distributed.init_process_group('gloo', store, rank=rank, world_size=count)
    try:
        function(rank, folder, *args)
        torch.distributed.barrier()  # or one that is done would break the others off
    finally:
        gc.collect()  # a model in a cycle of its runner would keep gloo's threads
        torch.distributed.destroy_process_group()
