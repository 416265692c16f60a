"""Does the contrast of pretraining live? One short run per arm and seed.

Every arm is the tiny pretraining config with a few overrides, trained by the runner on
the train split. Printed at each of ``--steps`` are, of the teacher's targets for the
global views of 256 training images, the mean KL divergence to uniform and the mutual
information of image and prototype, both in nats (0: the contrast teaches nothing), and
the losses and the gradient's norm, means of the last 20 steps.

    python -m projects.synthetic_humans DATA --size 128x96 --num-train 256 --num-val 16
    python tools/benchmark/pretrain_recipe.py DATA --arms shipped --seeds 0 1 2 \
        --steps 300 600
    python tools/benchmark/pretrain_recipe.py DATA
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.dataset import default_collate
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import Tensor, nn

from sapiens2_mm.engine import launch
from sapiens2_mm.models.losses.contrast import target_entropies
from sapiens2_mm.models.selfsup import PrototypeHead
from sapiens2_mm.registry import HOOKS, MODELS

CONFIG = (
    Path(__file__).parents[2]
    / 'configs/pretrain/sapiens2-tiny_mae-contrast_1xb16_synthetic-humans-128x96.py'
)
NUM_IMAGES = 256
LAYER_SCALE = 'model.backbone.layer_scale_init_value'
PROTOTYPE_STD = 'model.head.prototype_std'
FORMER = {LAYER_SCALE: 1e-4, PROTOTYPE_STD: 0.02}
# One change each, tried on the former recipe and on the shipped one.
CHANGES = {
    'KoLeo from 0 in 300 steps': {'custom_hooks': [dict(type='KoLeoRampHook')]},
    'learning rate from 0 in 300 steps': {
        'param_scheduler.0.end': 300,
        'param_scheduler.1.begin': 300,
    },
    'teacher temperature from 0.04 in 300 steps': {
        'model.contrast_loss.teacher_temperature': (0.04, 0.07),
        'model.contrast_loss.warmup_iters': 300,
    },
    'momentum to 1 in 1000 steps': {'model.teacher_momentum_iters': 1000},
    'prototypes frozen for 300 steps': {'model.frozen_prototype_iters': 300},
    'batch of 8': {'train_dataloader.batch_size': 8},
    'batch of 32': {'train_dataloader.batch_size': 32},
    'head of two layers': {'model.head.type': 'TwoLayerHead'},
}
ARMS = {
    'shipped': {},
    'former': FORMER,
    'former, layer scale 1': {PROTOTYPE_STD: 0.02},
    'former, unit prototypes': {LAYER_SCALE: 1e-4},
    **{f'former, {name}': FORMER | change for name, change in CHANGES.items()},
    'shipped, layer scale 0.1': {LAYER_SCALE: 0.1},
    'shipped, prototypes of length 4': {PROTOTYPE_STD: 0.5},
    **{f'shipped, {name}': change for name, change in CHANGES.items()},
}
# As deep as 1b, narrow, with the gain of its random matrices: 0.02 at width 1536. The
# batch is small and the learning rate ten times the shipped one of large models.
DEEP = {
    'model.backbone.arch': dict(
        embed_dims=64, num_layers=40, num_heads=2, feedforward_channels=256
    ),
    'model.backbone.init_cfg': dict(
        type='TruncNormal', layer='Linear', std=0.02 * (1536 / 64) ** 0.5
    ),
    'train_dataloader.batch_size': 8,
    'optim_wrapper.optimizer.lr': 1e-3,
}
ARMS |= {
    'shipped, 40 blocks': DEEP,
    'shipped, 40 blocks, layer scale 0.1': DEEP | {LAYER_SCALE: 0.1},
    'shipped, 40 blocks, layer scale 1e-4': DEEP | {LAYER_SCALE: 1e-4},
}
COLUMNS = ('step', 'KL', 'MI', 'loss_mae', 'loss_contrast', 'loss_koleo', 'grad_norm')


@HOOKS.register_module()
class KoLeoRampHook(Hook):
    """Grows the weight of KoLeo linearly from 0 in ``num_steps``."""

    def __init__(self, num_steps: int = 300) -> None:
        self.num_steps = num_steps

    def before_train(self, runner: Runner) -> None:
        self.weight = runner.model.koleo_loss.loss_weight

    def before_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: dict | None = None
    ) -> None:
        grown = min(runner.iter / self.num_steps, 1)
        runner.model.koleo_loss.loss_weight = self.weight * grown


@MODELS.register_module()
class TwoLayerHead(PrototypeHead):
    """The head without its middle layer."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.mlp = nn.Sequential(*self.mlp[:2], self.mlp[4])


class MeasureHook(Hook):
    """Prints a row of the table after each of ``steps``."""

    def __init__(self, name: str, seed: int, steps: Sequence[int]) -> None:
        self.name, self.seed, self.steps = name, seed, steps

    def before_train(self, runner: Runner) -> None:
        self.views = global_views(runner)

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: dict | None = None,
        outputs: dict | None = None,
    ) -> None:
        if runner.iter + 1 not in self.steps:
            return
        scalars = runner.message_hub.log_scalars
        losses = (scalars[f'train/{name}'].mean(20) for name in COLUMNS[3:])
        numbers = (*measure(runner.model, self.views), *losses)
        cells = (self.name, self.seed, runner.iter + 1, *(f'{x:.3f}' for x in numbers))
        print('|', ' | '.join(map(str, cells)), '|', flush=True)


def global_views(runner: Runner) -> Tensor:
    """(2, N, 3, H, W) normalized views of the first images, the same for every arm."""
    dataset = runner.train_dataloader.dataset
    samples = [dataset[n, n] for n in range(min(NUM_IMAGES, len(dataset)))]
    model = runner.model
    inputs = model.data_preprocessor(default_collate(samples))['inputs']
    return torch.stack(inputs[: model.num_global_views])


@torch.no_grad()
def measure(model: nn.Module, views: Tensor) -> tuple[float, float]:
    """KL to uniform and mutual information of the targets, nats."""
    model.eval()  # leaves the center as it is
    logits = torch.stack([model.teacher(images) for images in views])
    temperature = model.contrast_loss.teacher_temperature_at(int(model.iteration))
    targets = model.centering(logits, temperature)
    model.train()
    entropy, of_mean = target_entropies(targets)
    uniform = entropy.new_tensor(targets.shape[-1]).log()
    return float(uniform - entropy), float(of_mean - entropy)


def arm_config(data_root: str, overrides: dict, seed: int, num_steps: int) -> Config:
    """The tiny config with the overrides of an arm, ``num_steps`` of its schedule."""
    cfg = launch.load_config(str(CONFIG))
    changes = dict(overrides)
    cfg.custom_hooks = [cfg.custom_hooks[0], *changes.pop('custom_hooks', [])]
    cfg.merge_from_dict(
        {
            'train_dataloader.dataset.data_root': data_root,
            'randomness.seed': seed,
            'train_cfg.max_iters': num_steps,
            'default_hooks.checkpoint': None,
            'log_level': 'ERROR',
            **changes,
        }
    )
    return cfg


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Compare recipes of pretraining')
    parser.add_argument('data_root', help='folder of projects.synthetic_humans')
    parser.add_argument('--arms', nargs='+', choices=ARMS, default=list(ARMS))
    parser.add_argument('--seeds', nargs='+', type=int, default=[0])
    parser.add_argument('--steps', nargs='+', type=int, default=[300])
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    torch.set_num_threads(1)
    print('| arm | seed |', ' | '.join(COLUMNS), '|')
    print('| --- ' * (2 + len(COLUMNS)) + '|', flush=True)
    for name in args.arms:
        for seed in args.seeds:
            cfg = arm_config(args.data_root, ARMS[name], seed, max(args.steps))
            with tempfile.TemporaryDirectory() as folder:
                cfg.work_dir = folder
                runner = launch.build_runner(cfg)
                runner.register_hook(MeasureHook(name, seed, args.steps), 'LOWEST')
                runner.train()


if __name__ == '__main__':
    main()
