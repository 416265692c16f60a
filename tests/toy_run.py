"""A training run of a second, with everything that a resumed run must restore."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.evaluator import BaseMetric, Evaluator
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import Tensor, nn
from torch.utils.data import Dataset

from sapiens2_mm.models import Sapiens2

ARCH = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)


class ToyModel(BaseModel):
    """A backbone with stochastic depth, and a last layer of ``channels``."""

    def __init__(self, channels: int = 2, **backbone: Any) -> None:
        super().__init__()
        options = dict(arch=ARCH, img_size=(32, 32), drop_path_rate=0.5)
        self.backbone = Sapiens2(out_type='cls_token', **{**options, **backbone})
        self.head = nn.ModuleDict(
            {'final_layer': nn.Linear(self.backbone.embed_dims, channels)}
        )

    def forward(
        self, inputs: list[Tensor], data_samples: Any = None, mode: str = 'tensor'
    ) -> Any:
        out = self.head['final_layer'](self.backbone(torch.stack(list(inputs)))[0])
        return dict(loss=(out - 1).square().mean()) if mode == 'loss' else [out]


class ToyData(Dataset):
    """Images that differ by index and by both random generators."""

    metainfo = dict(classes=('one', 'two'))
    seen: list[int] = []

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> dict:
        self.seen.append(index)
        noise = torch.randn(3, 32, 32) + np.random.rand()
        return dict(inputs=index / 8 + noise)


class ToyMetric(BaseMetric):
    default_prefix = 'toy'

    def process(self, data_batch: Any, data_samples: Any) -> None:
        self.results.append(float(data_samples[0].mean()))

    def compute_metrics(self, results: list) -> dict:
        return dict(score=np.float64(np.mean(results)))


class StopAfter(Hook):
    """Ends the training early, as if it was interrupted."""

    priority = 'LOWEST'

    def __init__(self, iteration: int) -> None:
        self.iteration = iteration

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        runner.train_loop.stop_training = runner.iter + 1 >= self.iteration


def toy_runner(
    work_dir: str | Path,
    model: nn.Module | None = None,
    iterations: int = 6,
    hooks: tuple = (),
    workers: int = 0,
    checkpoint: dict | None = None,
    val_interval: int = 1,
    train_cfg: dict | None = None,
    sampler: dict | None = None,
    extra_hooks: dict | None = None,
    averages: dict | None = None,
    val_evaluator: Evaluator | None = None,
    **options: Any,
) -> Runner:
    """Layer decay, clipping, warm-up, EMA, validation every ``val_interval``."""
    torch.manual_seed(0)
    toy_runner.count += 1
    loader = dict(batch_size=2, num_workers=0, dataset=ToyData())
    order = dict(type='DefaultSampler', shuffle=False)
    train_loader = {**loader, 'num_workers': workers}
    return Runner(
        ToyModel() if model is None else model,
        work_dir=str(work_dir),
        experiment_name=f'toy{toy_runner.count}',
        train_dataloader=dict(
            train_loader, sampler=sampler or dict(type='InfiniteSampler')
        ),
        train_cfg=train_cfg
        or dict(by_epoch=False, max_iters=iterations, val_interval=val_interval),
        val_dataloader=dict(loader, sampler=order),
        val_cfg=dict(),
        val_evaluator=val_evaluator or Evaluator([ToyMetric()]),
        test_dataloader=dict(loader, sampler=order),
        test_cfg=dict(),
        test_evaluator=Evaluator([ToyMetric()]),
        optim_wrapper=dict(
            optimizer=dict(type='AdamW', lr=0.01),
            constructor='sapiens2_mm.LayerDecayOptimWrapperConstructor',
            paramwise_cfg=dict(layer_decay_rate=0.8),
            clip_grad=dict(max_norm=1.0),
        ),
        param_scheduler=[
            dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=3),
            dict(type='PolyLR', by_epoch=False, begin=3, end=max(4, iterations)),
        ],
        default_hooks={
            'load': dict(type='sapiens2_mm.LoadCheckpointHook'),
            'random_state': dict(type='sapiens2_mm.RandomStateHook'),
            'checkpoint': dict(
                type='sapiens2_mm.AtomicCheckpointHook',
                **{'by_epoch': False, 'interval': 1, **(checkpoint or {})},
            ),
            **(extra_hooks or {}),
        },
        custom_hooks=[averages or dict(type='EMAHook', momentum=0.1), *hooks],
        randomness=dict(seed=0),
        default_scope='mmengine',
        log_level='WARNING',
        **options,
    )


toy_runner.count = 0
