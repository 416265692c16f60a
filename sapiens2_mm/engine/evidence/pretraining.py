"""Pretraining of the compared arms within equal processor time."""

import math
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner
from safetensors.torch import load_file
from torch import Tensor

from sapiens2_mm.models.selfsup.export import save_backbone
from sapiens2_mm.registry import MODELS

from .. import launch

JOINT = 'sapiens2-tiny_mae-contrast_1xb16_synthetic-humans-128x96.py'
RECONSTRUCTION = 'sapiens2-tiny_mae_1xb16_synthetic-humans-128x96.py'
# Arm -> config in configs/pretrain, what is changed in it
ARMS = {
    'reconstruction': (RECONSTRUCTION, {}),
    'joint': (JOINT, {}),
    'joint, contrast off': (JOINT, {'model.contrast_loss.loss_weight': 0.0}),
}
_LOGGED = (
    'loss_mae',
    'loss_contrast',
    'loss_koleo',
    'teacher_mutual_information',
    'teacher_kl_uniform',
)


class ProcessorBudget(Hook):
    """Ends the training after a time of this process's processor, views included.

    The learning rate follows the spent share of it, linear warm-up and cosine, instead
    of iterations, and encoders are written at shares of it.

    Args:
        seconds: processor time of the training.
        milestones: shares at which to write; 0 is before the first step.
        folder: gets ``{student,teacher}_{share}.safetensors``.
        warmup: share of the warm-up.
    """

    priority = 'VERY_LOW'  # after the teacher has moved

    def __init__(
        self,
        seconds: float,
        milestones: Sequence[float],
        folder: Path,
        warmup: float = 0.1,
    ) -> None:
        self.seconds = seconds
        self.milestones = sorted(milestones)
        self.folder = folder
        self.warmup = warmup
        self.spent = 0.0
        self.started = 0.0

    def before_train(self, runner: Runner) -> None:
        for group in runner.optim_wrapper.param_groups:
            group['initial_lr'] = group['lr']
        self._write(runner, 0.0)
        self._set_rate(runner)
        self.started = time.process_time()

    def after_train_iter(self, runner: Runner, *args, **kwargs) -> None:
        self.spent = time.process_time() - self.started
        share = self.spent / self.seconds
        self._write(runner, share)
        self._set_rate(runner)
        runner.train_loop.stop_training = share >= 1

    def _set_rate(self, runner: Runner) -> None:
        share = min(self.spent / self.seconds, 1)
        done = (share - self.warmup) / (1 - self.warmup)
        factor = (1 + math.cos(math.pi * done)) / 2
        if share < self.warmup:
            factor = max(share / self.warmup, 1e-3)
        for group in runner.optim_wrapper.param_groups:
            group['lr'] = factor * group['initial_lr']

    def _write(self, runner: Runner, share: float) -> None:
        while self.milestones and self.milestones[0] <= share:
            name = f'{self.milestones.pop(0):g}.safetensors'
            weights = runner.model.state_dict()
            for which in ('student', 'teacher'):
                if which == 'student' or runner.model.teacher is not None:
                    save_backbone(weights, self.folder / f'{which}_{name}', which)


def arm_config(arm: str, configs: str | Path, data_root: str | Path) -> Config:
    """The config of one arm, on the train split of ``data_root``.

    Args:
        arm: one of ``ARMS``.
        configs: the folder ``configs/pretrain``.
        data_root: of the synthetic humans.
    """
    name, changes = ARMS[arm]
    cfg = Config.fromfile(Path(configs) / name)
    cfg.merge_from_dict(changes)
    cfg.train_dataloader.dataset.data_root = str(data_root)
    return cfg


def pretrain(
    cfg: Config,
    folder: Path,
    seed: int,
    seconds: float,
    milestones: Sequence[float] = (0, 0.25, 0.5, 1),
) -> dict[str, float]:
    """Train for ``seconds`` of processor time; encoders lie in ``folder`` after it.

    Args:
        cfg: of pretraining; its number of iterations and schedule of the learning rate
            are those of ``ProcessorBudget`` instead.
        folder: for everything that is written.
        seed: of order, views, masks and weights.
        seconds: of processor time.
        milestones: see ``ProcessorBudget``.

    Returns:
        ``steps``, ``seconds`` spent, and means of the logged losses and of the
        contrast's state over the last 50 steps.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cfg.work_dir = str(folder)
    cfg.randomness.seed = seed
    cfg.train_cfg.max_iters = 10**9  # the budget ends it
    cfg.param_scheduler = None
    cfg.log_level = 'WARNING'
    # In this process, so that its clock counts the views too.
    cfg.train_dataloader.update(num_workers=0, persistent_workers=False)
    cfg.default_hooks.checkpoint = None
    drawn = ('sapiens2_mm.ReconstructionHook', 'sapiens2_mm.ExportBackboneHook')
    cfg.custom_hooks = [hook for hook in cfg.custom_hooks if hook.type not in drawn]
    runner = launch.build_runner(cfg)
    budget = ProcessorBudget(seconds, milestones, folder)
    runner.register_hook(budget)
    runner.train()
    logs = runner.message_hub.log_scalars
    means = {
        name: float(logs[f'train/{name}'].mean(50))
        for name in _LOGGED
        if f'train/{name}' in logs
    }
    return dict(steps=runner.iter, seconds=budget.spent, **means)


@torch.no_grad()
def encode(cfg: Config, path: Path, images: Tensor, batch_size: int = 64) -> Tensor:
    """Features of an exported encoder: patch tokens after the final norm.

    Args:
        cfg: that the encoder was pretrained by.
        path: a file of ``ProcessorBudget``.
        images: (N, 3, H, W) uint8 BGR.
        batch_size: images at once.

    Returns:
        (N, h, w, C) float32.
    """
    backbone = MODELS.build({**cfg.model.backbone, 'out_type': 'featmap'})
    backbone.load_state_dict(load_file(path))
    backbone.eval()
    mean, std = (
        torch.tensor(cfg.model.data_preprocessor[name])[:, None, None]
        for name in ('mean', 'std')
    )
    maps = [
        backbone((batch.flip(1) - mean) / std)[0] for batch in images.split(batch_size)
    ]
    return torch.cat(maps).permute(0, 2, 3, 1)


def raw_patches(images: Tensor, patch_size: int) -> Tensor:
    """(N, 3, H, W) to the pixels of its patches, (N, h, w, 3 * patch_size**2)."""
    patches = images.float().unfold(2, patch_size, patch_size)
    patches = patches.unfold(3, patch_size, patch_size)
    return patches.permute(0, 2, 3, 1, 4, 5).flatten(3)
