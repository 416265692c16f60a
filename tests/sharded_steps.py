"""Training steps of the tiny models of all tasks, on any number of processes.

``python tests/sharded_steps.py FOLDER 2:pose:fsdp2 ...`` forks 2 of them, and so on;
``2:pose:fsdp2:whole`` is a whole run.
"""

import copy
import itertools
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from mmengine.config import Config
from mmengine.logging import MessageHub
from mmengine.registry import FUNCTIONS, STRATEGIES, init_default_scope
from mmengine.runner import FlexibleRunner, Runner

from sapiens2_mm.engine import launch
from sapiens2_mm.engine.hooks.load_checkpoint_hook import unwrapped
from sapiens2_mm.engine.hooks.teacher_update_hook import (
    all_reduce,
    gather_with_gradient,
)
from sapiens2_mm.engine.parallelize import recompute
from sapiens2_mm.registry import DATASETS, MODELS

ROOT = Path(__file__).parent.parent
ARCH = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)
NUM_STEPS = 3
BATCH = 4  # of all processes together
GRID = (16, 12)  # tokens of a global view
DENSE = ('normal', 'depth', 'pointmap', 'albedo', 'matting')
TASKS = ('pose', 'seg', *DENSE, 'pretrain', 'mae')
_FSDP2 = dict(type='sapiens2_mm.FSDP2Strategy')
KINDS = {
    'one': dict(type='mmengine.SingleDeviceStrategy'),
    'ddp': dict(
        type='mmengine.DDPStrategy',
        model_wrapper=dict(
            type='MMDistributedDataParallel', device_ids=None, broadcast_buffers=False
        ),
    ),
    'fsdp2': _FSDP2,
    'hsdp2': dict(_FSDP2, shard_size=2),
    'bf16': dict(_FSDP2, param_dtype='bfloat16'),
}
# (height, width) of images, then (width, height), of heatmaps, of features of pointmaps
_SIZES = {
    (256, 192): (96, 64),
    (192, 256): (64, 96),
    (48, 64): (16, 24),
    (16, 12): (6, 4),
}
_SMALLER = {tuple(map(str, size)): smaller for size, smaller in _SIZES.items()}


def tiny_config(task: str) -> Config:
    """A shipped tiny config with an even smaller model, on the six people of tests."""
    folder = 'pretrain' if task in ('pretrain', 'mae') else task
    pattern = dict(
        pretrain='sapiens2-tiny_mae-contrast_*.py', mae='sapiens2-tiny_mae_*.py'
    ).get(task, 'sapiens2-tiny_*synthetic-humans-*.py')
    (path,) = (ROOT / 'configs' / folder).glob(pattern)
    cfg = Config.fromfile(path)
    if folder != 'pretrain':
        cfg = Config(_smaller(cfg._cfg_dict.to_dict()))
    cfg.model.backbone.arch = ARCH
    if folder == 'pretrain':
        cfg.model.neck.update(embed_dims=32, num_layers=1, num_heads=2)
    else:
        head = cfg.model.get('decode_head') or cfg.model.head
        narrow = ('deconv_out_channels', 'upsample_channels', 'conv_out_channels')
        head.update({k: (8,) * len(head[k]) for k in narrow if k in head})
        head.in_channels = 32
    if task == 'pointmap':  # the others make much of rounding on random points
        head.loss_geometry, head.loss_depth = [], []
    data = cfg.train_dataloader.dataset
    data.update(data_root=str(ROOT / 'tests/data/synthetic_humans'), indices=None)
    cfg.optim_wrapper.optimizer = dict(type='AdamW', lr=1e-3, eps=1e-3, fused=True)
    cfg.optim_wrapper.clip_grad = dict(max_norm=0.5)
    return cfg


def _smaller(node: Any) -> Any:
    """The config at smaller sizes."""
    if isinstance(node, dict):
        return {key: _smaller(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return _SMALLER.get(tuple(map(str, node))) or [_smaller(each) for each in node]
    return node


def batches(cfg: Config) -> list[list[dict]]:
    """Samples of ``NUM_STEPS`` batches: other pictures, annotations of one person.

    Losses are means over the pixels of a process that have an annotation; with equally
    many of them everywhere the mean over processes is the mean over the batch.
    """
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    generator = torch.Generator().manual_seed(0)

    def noise(image: Any) -> Any:
        if isinstance(image, list | tuple):
            return [noise(each) for each in image]
        values = torch.randint(0, 256, image.shape, generator=generator)
        return values.to(image.dtype)

    draws = hasattr(dataset, 'seed')
    sample = dataset[(0, 0) if draws else 0]
    samples = [
        dict(copy.deepcopy(sample), inputs=noise(sample['inputs']))
        for _ in range(NUM_STEPS * BATCH)
    ]
    return [samples[i : i + BATCH] for i in range(0, len(samples), BATCH)]


def run(
    cfg: Config, steps: list[list[dict]], task: str, kind: str, folder: Path
) -> dict:
    """Train, and return what came out; the weights in the main process alone."""
    init_default_scope(cfg.default_scope)
    launcher = 'none' if kind == 'one' else 'pytorch'
    strategy = STRATEGIES.build(
        dict(
            KINDS[kind],
            work_dir=str(folder / 'work'),
            env_kwargs=dict(launcher=launcher, randomness=dict(seed=0)),
            experiment_name=f'{task}-{kind}',
            log_kwargs=dict(log_level='WARNING'),
        )
    )
    if task == 'pretrain':
        cfg.model.num_local_views = len(steps[0][0]['inputs']) - 2
    model = strategy.build_model(cfg.model)
    recompute(unwrapped(model), 'selective')
    kwargs = dict(max_iters=NUM_STEPS)
    model, wrapper = strategy.prepare(
        model, optim_wrapper=cfg.optim_wrapper, dispatch_kwargs=kwargs
    )
    inner = unwrapped(model)
    if task in ('pretrain', 'mae'):  # else each process would draw its own masks
        for number, sample in enumerate(itertools.chain(*steps)):
            masks = inner.mask_generator.draw((number,), 2, GRID)
            sample['data_samples'].set_metainfo(dict(ids_keep=masks))
    rank, size = strategy.rank, BATCH // strategy.world_size
    if launcher == 'pytorch' and task in ('pretrain', 'mae'):
        inner.share_between_processes(rank, all_reduce, gather_with_gradient)
    collate = cfg.train_dataloader.get('collate_fn', dict(type='pseudo_collate'))
    collate = FUNCTIONS.get(collate['type'])
    norms, losses = [], []
    model.train()
    for samples in steps:
        batch = collate(samples[rank * size : (rank + 1) * size])
        logged = model.train_step(batch, wrapper)
        if hasattr(inner, 'after_step'):
            inner.after_step()
        losses.append(float(logged['loss'].detach()))
        hub = MessageHub.get_current_instance()
        norms.append(hub.get_scalar('train/grad_norm').current())
    state = strategy.model_state_dict()
    optimizer = strategy.optim_state_dict()
    return dict(state=state, optimizer=optimizer, norms=norms, losses=losses)


def whole_run(cfg: Config, task: str, kind: str, world_size: int, folder: Path) -> dict:
    """All that ``tools/train.py`` does: loaders, hooks, files, validation.

    ``kind`` may end in ``-resumed``: from iteration 2 of the sharded run.
    """
    cfg = copy.deepcopy(cfg)
    kind, _, resumed = kind.partition('-')
    cfg.work_dir = str(folder / f'{task}-{kind}-{world_size}{resumed}')
    cfg.experiment_name = Path(cfg.work_dir).name
    cfg.launcher = 'pytorch' if dist.is_initialized() else 'none'
    if kind in ('fsdp2', 'bf16'):
        cfg.strategy = dict(KINDS[kind])
    if resumed:
        launch.resume(cfg, str(folder / f'{task}-fsdp2-2/iter_2.pth'))
    for name in ('train_dataloader', 'val_dataloader'):
        loader = cfg.get(name) or {}
        loader.update(num_workers=0, persistent_workers=False, batch_size=1)
    cfg.train_dataloader.batch_size = BATCH // world_size
    cfg.train_cfg.max_iters = NUM_STEPS
    cfg.default_hooks.checkpoint = dict(
        type='sapiens2_mm.AtomicCheckpointHook', by_epoch=False, interval=1
    )
    cfg.param_scheduler = [dict(type='LinearLR', by_epoch=False, begin=0, end=9)]
    if task == 'pretrain':
        for hook in cfg.custom_hooks:
            if 'interval' in hook:  # measurements and pictures
                hook.interval = 1
        cfg.custom_hooks[0].gather_koleo = True
    else:
        cfg.train_cfg.val_interval = NUM_STEPS
        cfg.optim_wrapper.optimizer.lr = 0.0  # the same model is validated everywhere
        cfg.val_dataloader.dataset.update(
            data_root=cfg.train_dataloader.dataset.data_root, indices=None
        )
    FlexibleRunner._log_env = Runner._log_env = lambda *args: None  # asks compilers
    runner = launch.build_runner(cfg)
    launch.train(runner)
    scalars = runner.message_hub.log_scalars
    return {name: values.current() for name, values in scalars.items()}


def process(rank: int, world_size: int, folder: Path, runs: list[tuple]) -> None:
    torch.set_num_threads(1)  # the pool of the parent is not forked with it
    os.environ['LOCAL_RANK'] = str(rank)
    if world_size > 1:
        path = folder / f'store{"-".join(map(str, (world_size, *runs[0][2:])))}'
        store = dist.FileStore(str(path), world_size)
        dist.init_process_group('gloo', store=store, rank=rank, world_size=world_size)
    for cfg, steps, task, kind in runs:
        if steps is None:
            out = whole_run(cfg, task, kind, world_size, folder)
        else:
            out = run(cfg, steps, task, kind, folder)
        if rank == 0:
            name = f'{task}-{kind}-{world_size}'
            torch.save(out, folder / f'{name}{"" if steps else "-whole"}.pth')
    if dist.is_initialized():
        dist.destroy_process_group()


def main(folder: str, *names: str) -> None:
    torch.set_num_threads(1)
    runs: dict[tuple, list[tuple]] = {}
    data: dict[str, tuple] = {}
    for name in names:
        world_size, task, kind, *whole = name.split(':')
        if task not in data:  # imports its host, too, once for all processes
            cfg = tiny_config(task)
            init_default_scope(cfg.default_scope)
            MODELS.build(cfg.model)
            data[task] = cfg, batches(cfg)
        cfg, steps = data[task]
        steps = None if whole else steps
        runs.setdefault((int(world_size), *whole), []).append((cfg, steps, task, kind))
    for (world_size, *_), of_size in runs.items():
        args = world_size, Path(folder), of_size
        torch.multiprocessing.start_processes(
            process, args, world_size, start_method='fork'
        )


if __name__ == '__main__':
    main(*sys.argv[1:])
