"""Programs that start the processes of a run."""

import atexit
import gc
import os

import torch
from mmengine.config import Config

# Launcher -> what the program that starts its processes sets, and that program.
_STARTED_BY = dict(
    pytorch=('RANK', 'torchrun'),
    slurm=('SLURM_PROCID', 'srun'),
    mpi=('OMPI_COMM_WORLD_LOCAL_RANK', 'mpirun'),
)
# What they call the variables of torchrun.
_RANKS = dict(
    slurm=dict(
        RANK='SLURM_PROCID', WORLD_SIZE='SLURM_NTASKS', LOCAL_RANK='SLURM_LOCALID'
    ),
    mpi=dict(
        RANK='OMPI_COMM_WORLD_RANK',
        WORLD_SIZE='OMPI_COMM_WORLD_SIZE',
        LOCAL_RANK='OMPI_COMM_WORLD_LOCAL_RANK',
    ),
)


def check_started(launcher: str) -> None:
    """The program of a launcher must have started this process.

    Raises:
        ValueError: names the program.
    """
    variable, program = _STARTED_BY.get(launcher, ('PATH', ''))
    if variable not in os.environ:
        raise ValueError(
            f'--launcher {launcher} is for processes that {program} starts, and it '
            f'did not start this one ({variable} is not set); start it by {program}, '
            'or leave --launcher out'
        )


def distribute_on_cpu(cfg: Config) -> None:
    """Join the processes of the launcher by gloo, and keep the model on the CPU.

    Left to itself mmengine gives each process a GPU, and the model to that.
    """
    if not torch.distributed.is_initialized():
        for name, theirs in _RANKS.get(cfg.launcher, {}).items():
            os.environ[name] = os.environ[theirs]
        torch.distributed.init_process_group('gloo')
        atexit.register(_leave_group)  # gloo's threads may abort a process that ends
    wrapper = dict(
        type='MMDistributedDataParallel',
        broadcast_buffers=False,
        find_unused_parameters=cfg.get('find_unused_parameters', False),
    )
    cfg.model_wrapper_cfg = {
        'device_ids': None,
        **(cfg.get('model_wrapper_cfg') or wrapper),
    }


def _leave_group() -> None:
    gc.collect()  # a model in a cycle of the runner would keep the group's threads
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
