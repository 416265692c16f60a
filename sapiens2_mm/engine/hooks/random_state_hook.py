"""A resumed run draws the random numbers of the uninterrupted one."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner

from sapiens2_mm.checkpoint.errors import CheckpointError, shown
from sapiens2_mm.registry import HOOKS

from ..loops import SeekingTrainLoop


def get_random_state() -> dict[str, Any]:
    """The states of all global generators."""
    state = dict(
        python=random.getstate(),
        numpy=np.random.get_state(),
        torch=torch.get_rng_state(),
    )
    if torch.cuda.is_available():
        state['cuda'] = torch.cuda.get_rng_state_all()
    return state


def set_random_state(state: dict[str, Any]) -> None:
    """Put back what ``get_random_state`` returned."""
    random.setstate(state['python'])
    np.random.set_state(state['numpy'])
    torch.set_rng_state(state['torch'].cpu())
    if 'cuda' in state and len(state['cuda']) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([s.cpu() for s in state['cuda']])


class _RestoresAfter:
    """Batches of ``batches``, with the random state set before number ``count``."""

    def __init__(self, batches: Iterator, count: int, state: dict[str, Any]) -> None:
        self.batches, self.count, self.state = batches, count, state

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        if self.count == 0:
            set_random_state(self.state)
        self.count -= 1
        return next(self.batches)


@HOOKS.register_module()
class RandomStateHook(Hook):
    """Save the state of the random generators, and go on from it when resumed.

    mmengine restores weights, optimizer, schedules and, by reading the batches that
    were used before, the order of the data and the augmentation in loader processes.
    What is missing is the state of the training process itself: stochastic depth,
    dropout, augmentation without loader processes. Validation leaves the state as it
    was, so that skipping one does not change the training.

    With several processes the checkpoint of one of them is not used for the others:
    their generators start anew, and only the data order is that of the straight run.
    """

    priority = 'VERY_LOW'

    def __init__(self) -> None:
        self._before_validation: dict[str, Any] | None = None
        self._resumed: dict[str, Any] | None = None

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        checkpoint['random_state'] = get_random_state()

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        if runner._resume and runner.world_size == 1:
            self._resumed = checkpoint.get('random_state')
            own = get_random_state()
            try:
                set_random_state(self._resumed or own)
            except (TypeError, ValueError, LookupError, RuntimeError) as err:
                source = getattr(checkpoint, 'source', 'the checkpoint')
                raise CheckpointError(
                    f'cannot resume from {source}: its random_state is none of torch, '
                    f'numpy and Python ({shown(err)}); start from it by load_from'
                ) from err
            finally:
                set_random_state(own)

    def before_train_epoch(self, runner: Runner) -> None:
        if self._resumed is None:
            return
        loop = runner.train_loop
        seeks = isinstance(loop, SeekingTrainLoop)
        if hasattr(loop, 'dataloader_iterator') and not seeks:
            # The loop reads this many batches first, which draws numbers too.
            loop.dataloader_iterator = _RestoresAfter(
                loop.dataloader_iterator, runner.iter, self._resumed
            )
        else:
            set_random_state(self._resumed)
        self._resumed = None

    def before_val(self, runner: Runner) -> None:
        self._before_validation = get_random_state()

    def after_val(self, runner: Runner) -> None:
        set_random_state(self._before_validation)
