"""Which ways to train a config fit a number of GPUs, and how long they take."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import torch
from mmengine.config import Config

from .flops import count_train_flops
from .memory import Memory, Trace, is_mixed, plan_memory, state_bytes, trace_step

MODES = ('none', 'selective', 'full')  # of recomputation, the fastest first
_MAX_BATCH = 4096


@dataclass(frozen=True)
class Plan:
    """One way to train.

    Args:
        num_gpus: all.
        shard_size: GPUs that hold one copy in parts; 1 is DDP.
        mode: of ``parallelize.recompute``.
        batch_size: images of one GPU that ``memory`` is for.
        memory: None if weights, gradients and optimizer alone are too large.
        largest_batch: that fits; 0 if none does.
    """

    num_gpus: int
    shard_size: int
    mode: str
    batch_size: int
    memory: Memory | None
    largest_batch: int

    @property
    def sharding(self) -> str:
        if self.shard_size == 1:
            return 'ddp'
        return (
            'fsdp2' if self.shard_size == self.num_gpus else f'fsdp2/{self.shard_size}'
        )

    @property
    def fits(self) -> bool:
        return self.largest_batch >= self.batch_size

    def options(self, mixed: bool) -> list[str]:
        """For ``--cfg-options`` of ``tools/train.py``."""
        options = [f'recompute={self.mode}']
        if self.shard_size > 1:
            options.append('strategy.type=sapiens2_mm.FSDP2Strategy')
            if mixed:
                options.append('strategy.param_dtype=bfloat16')
            if self.shard_size < self.num_gpus:
                options.append(f'strategy.shard_size={self.shard_size}')
        return options


class Planner:
    """Plans for one config; each kind of step is followed once.

    Args:
        cfg: of a training.
    """

    def __init__(self, cfg: Config) -> None:
        self.cfg = cfg
        self.mixed = is_mixed(cfg)
        self._traces: dict[tuple[str, bool], Trace] = {}

    @cached_property
    def flops_per_image(self) -> int:
        return count_train_flops(self.cfg)

    @cached_property
    def _static(self) -> int:
        """Bytes of one whole copy, without activations."""
        sizes = self._trace('full', sharded=True).sizes
        moments = state_bytes(self.cfg.optim_wrapper.optimizer)
        return 4 * (sizes.student + sizes.teacher) + (4 + moments) * sizes.trained

    def _trace(self, mode: str, sharded: bool) -> Trace:
        key = mode, sharded and self.mixed
        if key not in self._traces:
            dtype = torch.bfloat16 if key[1] else None
            self._traces[key] = trace_step(self.cfg, mode, dtype)
        return self._traces[key]

    def memory(
        self, num_gpus: int, shard_size: int, mode: str, batch_size: int
    ) -> Memory:
        trace = self._trace(mode, shard_size > 1)
        return plan_memory(self.cfg, trace, batch_size, num_gpus, shard_size)

    def plans(self, num_gpus: int, limit: float, batch_size: int) -> list[Plan]:
        """All ways, those that keep most in memory first.

        Args:
            num_gpus: all; eight to a machine.
            limit: bytes of a GPU that may be used.
            batch_size: images of one GPU.
        """
        shard_sizes = sorted({1, min(num_gpus, 8), num_gpus})
        return [
            self._plan(num_gpus, shard_size, mode, limit, batch_size)
            for shard_size, mode in product(shard_sizes, MODES)
        ]

    def _plan(
        self, num_gpus: int, shard_size: int, mode: str, limit: float, batch_size: int
    ) -> Plan:
        choice = num_gpus, shard_size, mode
        if self._static / shard_size > limit:
            return Plan(*choice, batch_size, None, 0)
        below, above = 0, _MAX_BATCH  # what fits, what does not
        while above - below > 1:
            middle = (below + above) // 2
            if self.memory(*choice, middle).total <= limit:
                below = middle
            else:
                above = middle
        return Plan(*choice, batch_size, self.memory(*choice, batch_size), below)

    def step_seconds(self, batch_size: int, peak: float, mfu: float) -> float:
        """Of a step of ``batch_size`` images per GPU, at a share of the peak FLOP/s."""
        return self.flops_per_image * batch_size / (peak * mfu)


def best(plans: Sequence[Plan]) -> Plan | None:
    """The first that fits at its batch; else that of the largest batch, if any."""
    fitting = [plan for plan in plans if plan.fits]
    largest = max(plans, key=lambda plan: plan.largest_batch)
    return fitting[0] if fitting else largest if largest.largest_batch else None
