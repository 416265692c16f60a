"""Moves the teacher after each optimizer step."""

import torch
from mmengine import dist
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.runner import Runner
from torch import Tensor
from torch.distributed.nn.functional import all_gather

from sapiens2_mm.registry import HOOKS


@HOOKS.register_module()
class TeacherUpdateHook(Hook):
    """Calls ``after_step`` of a ``Sapiens2Pretrain`` once per optimizer step.

    With gradient accumulation that is once per accumulated batch, not per iteration.
    A run that is not resumed begins at step 0 of the model's schedules, also if
    ``load_from`` brings the weights of one that was further.
    If several processes train, it also hands the model what it needs to combine the
    center's statistics over them.

    It warns once if the teacher's targets tell images apart by less than
    ``min_information`` for ``patience`` iterations in a row: nothing is then learned
    by the contrast, while ``loss_contrast`` looks quiet.

    Args:
        gather_koleo: look for nearest neighbors among the samples of all processes
            instead of within each.
        min_information: smallest ``teacher_mutual_information`` of a living contrast,
            nats.
        patience: number of iterations, all of them below, that give the warning.
    """

    priority = 'NORMAL'  # before the checkpoint is written

    def __init__(
        self,
        gather_koleo: bool = False,
        min_information: float = 0.05,
        patience: int = 1000,
    ) -> None:
        self.gather_koleo = gather_koleo
        self.min_information = min_information
        self.patience = patience
        self.num_dead = 0  # iterations in a row
        self.warned = False

    def before_train(self, runner: Runner) -> None:
        if runner.iter == 0:
            _unwrap(runner).restart()
        rank, world_size = dist.get_dist_info()
        if world_size > 1:
            gather = gather_with_gradient if self.gather_koleo else None
            _unwrap(runner).share_between_processes(rank, all_reduce, gather)

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: dict | None = None,
        outputs: dict | None = None,
    ) -> None:
        # True when the backward pass just counted was followed by a step.
        if runner.optim_wrapper.should_update():
            _unwrap(runner).after_step()
        self._watch_contrast(runner)

    def _watch_contrast(self, runner: Runner) -> None:
        scalars = runner.message_hub.log_scalars  # on the host already
        if 'train/teacher_mutual_information' not in scalars:
            return  # reconstruction alone
        information = scalars['train/teacher_mutual_information'].current()
        self.num_dead = self.num_dead + 1 if information < self.min_information else 0
        if self.num_dead != self.patience or self.warned:
            return
        self.warned = True
        distance = scalars['train/teacher_kl_uniform'].current()
        uniform = distance < self.min_information
        how = 'they are uniform' if uniform else 'all images get the same one'
        runner.logger.warning(
            f'THE CONTRAST IS DEAD: for {self.patience} iterations the targets of the '
            f'teacher have not told images apart; {how} (teacher_mutual_information '
            f'{information:.4f}, teacher_kl_uniform {distance:.4f}). loss_contrast '
            'teaches nothing; see "Collapse" in configs/pretrain/README.md'
        )


def all_reduce(x: Tensor, op: str) -> Tensor:
    """Combine ``x`` over all processes; ``x`` itself stays as it is."""
    x = x.clone()
    dist.all_reduce(x, op)
    return x


def gather_with_gradient(x: Tensor) -> tuple[Tensor, int]:
    """Join (B, C) tensors of all processes, B equal; and the row where ``x`` begins."""
    return torch.cat(all_gather(x)), dist.get_rank() * len(x)


def _unwrap(runner: Runner) -> torch.nn.Module:
    model = runner.model
    return model.module if is_model_wrapper(model) else model
