"""Where the time of a training step goes, for every task and for its peer.

``python tools/benchmark/train_step.py DATA`` trains the shipped 0.4b configs for a few
steps with their pipelines, hooks and optimizer, and prints the split of a step; then
mmpose's ``HeatmapHead`` with ``GenerateTarget`` and mmseg's ``FCNHead`` with its
cross-entropy on the same backbone and data. DATA is a folder of synthetic humans. Fewer
``--layers`` than the 24 of the configs make all else look larger.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any

import sapiens2_mm.registry  # noqa: F401  prepares the import of the hosts

# isort: split
import loader
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

from sapiens2_mm.models.backbones.arch import ARCHS

ARCH = asdict(ARCHS['sapiens2_0.4b'])
WORK = ('forward', 'backward', 'optimizer')
PARTS = ('data wait', 'preprocessing', 'targets, accuracy', *WORK, 'rest')
# What makes targets and accuracies: in modules and, by name, in heads.
_OF_MODULES = {
    'sapiens2_mm.models.heads.pose_head': ('encode_targets', 'heatmap_pck'),
    'mmpose.models.heads.heatmap_heads.heatmap_head': ('pose_pck_accuracy',),
    'mmseg.models.decode_heads.decode_head': ('accuracy',),
}
_OF_HEADS = ('_stack_batch_gt', '_accuracy')


class Split(Hook):
    """Times of the parts of training steps; a part does not contain parts within it.

    Args:
        warmup: number of steps that do not count.
    """

    priority = 'LOWEST'

    def __init__(self, warmup: int) -> None:
        self.warmup = warmup
        self.times: dict[str, list[float]] = {}
        self._inner: list[list[float]] = []
        self._replaced: list[tuple[Any, str, Any]] = []

    def before_train(self, runner: Runner) -> None:
        loop, model, wrapper = runner.train_loop, runner.model, runner.optim_wrapper
        batches = loop.dataloader_iterator
        loop.dataloader_iterator = TimedBatches(batches, self)
        self._watch(loop, 'run_iter', 'rest')
        self._watch(model, '_run_forward', 'forward')
        self._watch(model.data_preprocessor, 'forward', 'preprocessing')
        self._watch(wrapper, 'backward', 'backward')
        self._watch(wrapper, 'step', 'optimizer')
        self._watch(wrapper, 'zero_grad', 'optimizer')
        head = getattr(model, 'decode_head', None)
        for name in _OF_HEADS:
            if hasattr(head, name):
                self._watch(head, name, 'targets, accuracy')
        for module, names in _OF_MODULES.items():
            for name in names:
                if module in sys.modules:
                    self._watch(sys.modules[module], name, 'targets, accuracy')

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        if runner.iter + 1 == self.warmup:
            self.times = {part: [0.0, 0.0] for part in PARTS}

    def after_train(self, runner: Runner) -> None:
        for owner, name, function in self._replaced:
            setattr(owner, name, function)

    def _watch(self, owner: Any, name: str, part: str) -> None:
        """Time a function of a module or object."""
        function = getattr(owner, name)
        self._replaced.append((owner, name, function))

        @wraps(function)  # with the marks that schedulers look for
        def timed(*args: Any, **kwargs: Any) -> Any:
            return self.time(part, lambda: function(*args, **kwargs))

        setattr(owner, name, timed)

    def time(self, part: str, function: Callable[[], Any]) -> Any:
        """Call ``function`` and add its time to the part."""
        self._inner.append([0.0, 0.0])
        start = time.process_time(), time.perf_counter()
        try:
            return function()
        finally:
            stop = time.process_time(), time.perf_counter()
            inner = self._inner.pop()
            for clock in (0, 1):
                spent = stop[clock] - start[clock]
                if part in self.times:
                    self.times[part][clock] += spent - inner[clock]
                if self._inner:
                    self._inner[-1][clock] += spent


class TimedBatches:
    """Batches, and the time that the training process waits for them."""

    def __init__(self, batches: Iterator, split: Split) -> None:
        self.batches, self.split = batches, split

    def __next__(self) -> Any:
        return self.split.time('data wait', lambda: next(self.batches))


def short_config(task: str, args: argparse.Namespace) -> Config:
    """The shipped 0.4b config of a task, for a few steps without files."""
    cfg = loader.task_config(task)
    cfg.model.backbone.arch = ARCH | dict(num_layers=args.layers)
    cfg.train_dataloader.dataset = loader.dataset_cfg(task, args.data)
    cfg.train_dataloader.update(batch_size=args.batch_size, num_workers=args.workers)
    cfg.train_cfg.max_iters = args.warmup + args.steps
    for stage in ('val', 'test'):
        for part in ('dataloader', 'cfg', 'evaluator'):
            cfg[f'{stage}_{part}'] = None
    cfg.default_hooks.update(checkpoint=None)
    cfg.default_hooks.logger.interval = 1
    cfg.log_level = 'WARNING'  # lines are made, not shown
    cfg.custom_hooks = [
        hook
        for hook in cfg.get('custom_hooks', [])
        if hook.type != 'sapiens2_mm.ExportBackboneHook'
    ]
    return cfg


def peer_config(task: str, args: argparse.Namespace) -> Config:
    """A host's head, loss and pipeline on the backbone and data of a task."""
    cfg = short_config(task, args)
    host, cfg.train_dataloader.dataset.pipeline = loader.PEERS[task]
    if host == 'mmpose':
        cfg.model.head.type = 'mmpose.HeatmapHead'
        cfg.model.head.loss = dict(
            type='mmpose.KeypointMSELoss', use_target_weight=True
        )
        return cfg
    cfg.model.type = 'mmseg.EncoderDecoder'
    cfg.model.decode_head = dict(
        type='mmseg.FCNHead',
        in_channels=ARCH['embed_dims'],
        in_index=0,
        channels=256,
        num_classes=29,
        norm_cfg=dict(type='BN'),
        loss_decode=dict(type='mmseg.CrossEntropyLoss'),
    )
    return cfg


def measure(cfg: Config, warmup: int) -> dict[str, list[float]]:
    """Processor and wall seconds of the parts of all steps but the first ones."""
    split = Split(warmup)
    with tempfile.TemporaryDirectory() as cfg.work_dir:
        # mmengine keeps loggers and visualizers by name, with the folder of the first
        cfg.experiment_name = cfg.visualizer.name = Path(cfg.work_dir).name
        runner = Runner.from_cfg(cfg)
        runner.register_hook(split)
        runner.train()
    return split.times


def print_split(name: str, times: dict[str, list[float]], num_steps: int) -> None:
    """Milliseconds of each part, and the share of what is no work of the network."""
    print(f'{name:26} processor ms   wall ms')
    for part, seconds in times.items():
        milliseconds = (1000 * each / num_steps for each in seconds)
        print('  {:24} {:11.1f} {:9.1f}'.format(part, *milliseconds))
    shares = [
        100 * (1 - sum(times[part][clock] for part in WORK) / sum(total))
        for clock, total in enumerate(zip(*times.values(), strict=True))
    ]
    print('  {:24} {:10.1f}% {:8.1f}%'.format('outside the network', *shares))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('data', help='folder of synthetic humans')
    parser.add_argument(
        '--tasks', nargs='+', choices=loader.TASKS, default=loader.TASKS
    )
    parser.add_argument('--layers', type=int, default=24, help='blocks of the backbone')
    parser.add_argument('--batch-size', type=int, default=1)
    parser.add_argument('--workers', type=int, default=2)
    parser.add_argument('--warmup', type=int, default=2, help='steps not counted')
    parser.add_argument('--steps', type=int, default=4)
    parser.add_argument('--threads', type=int, default=1)
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    for task in args.tasks:
        configs = {task: short_config}
        if task in ('pose', 'seg'):
            configs[f'{task}, {loader.PEERS[task][0]}'] = peer_config
        for name, config in configs.items():
            times = measure(config(task, args), args.warmup)
            print_split(name, times, args.steps)


if __name__ == '__main__':
    main()
