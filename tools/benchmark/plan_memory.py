"""Planned against measured memory of training steps on the CPU.

Each case runs two steps in a process of its own: the peak is that of the second, when
the optimizer has its state, above the process before it built the model.

    python tools/benchmark/plan_memory.py    # needs 10 GB and a few minutes
"""

import argparse
import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope

from sapiens2_mm.engine.parallelize import recompute
from sapiens2_mm.engine.planning.dry_run import build_model, loss_of, views_of
from sapiens2_mm.engine.planning.memory import plan_memory, trace_step
from sapiens2_mm.registry import OPTIMIZERS

CONFIGS = Path(__file__).parents[2] / 'configs'
PRETRAIN = 'pretrain/sapiens2-{}_mae-contrast_64xb32-500k_images-1024x768.py'
TINY = 'pretrain/sapiens2-tiny_mae-contrast_1xb16_synthetic-humans-128x96.py'
POSE = 'pose/sapiens2-0.4b_udp-heatmap_8xb6-10k_humans308-1024x768.py'
# Config, (height, width) of whole images or that of the config, batch, recomputation.
CASES = {
    'pretraining, tiny': (TINY, None, 64, 'none'),
    'pretraining, 0.1b': (PRETRAIN.format('0.1b'), (256, 192), 4, 'none'),
    'pretraining, 0.1b, full': (PRETRAIN.format('0.1b'), (256, 192), 4, 'full'),
    'pretraining, 0.4b': (PRETRAIN.format('0.4b'), (256, 192), 2, 'none'),
    'pretraining, 0.4b, selective': (
        PRETRAIN.format('0.4b'),
        (256, 192),
        2,
        'selective',
    ),
    'pose, 0.4b': (POSE, (256, 192), 2, 'none'),
}


def load(name: str) -> tuple[Config, int, str]:
    """Config, batch size and recomputation of a case; float32, as fast on any CPU."""
    path, size, batch_size, mode = CASES[name]
    cfg = Config.fromfile(CONFIGS / path)
    init_default_scope(cfg.default_scope)
    cfg.optim_wrapper.type = 'OptimWrapper'
    if size and 'pretrain' in path:
        whole, part = cfg.train_dataloader.dataset.pipeline[0].views
        whole.size, part.size = size, tuple(side // 2 for side in size)
    if size:
        cfg.model.backbone.img_size = size
    return cfg, batch_size, mode


def measure(name: str) -> float:
    """Bytes of the second step at its peak."""
    torch.set_num_threads(1)
    cfg, batch_size, mode = load(name)
    before = resident('VmRSS')
    model = build_model(cfg.model)
    recompute(model, mode)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = OPTIMIZERS.build(dict(cfg.optim_wrapper.optimizer, params=trained))
    views = [size for number, size in views_of(cfg) for _ in range(number)]
    inputs = [torch.randn(batch_size, 3, *size) for size in views]
    for _ in range(2):
        Path('/proc/self/clear_refs').write_text('5')  # resets VmHWM
        loss_of(model, inputs if len(inputs) > 1 else inputs[0]).backward()
        optimizer.step()
        optimizer.zero_grad()
    return resident('VmHWM') - before


def resident(key: str) -> float:
    for line in Path('/proc/self/status').read_text().splitlines():
        if line.startswith(key + ':'):
            return 1024.0 * int(line.split()[1])
    raise RuntimeError(f'/proc/self/status has no {key}')


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--cases', nargs='+', choices=CASES, default=list(CASES))
    args = parser.parse_args(argv)
    # What is freed goes back to the system at once and is not measured.
    os.environ['MALLOC_MMAP_THRESHOLD_'] = '65536'
    print('| step | planned, GB | measured, GB | planned / measured |')
    print('| --- | --- | --- | --- |')
    for name in args.cases:
        with multiprocessing.get_context('spawn').Pool(1) as pool:
            measured = pool.apply(measure, (name,))
        cfg, batch_size, mode = load(name)
        planned = plan_memory(cfg, trace_step(cfg, mode), batch_size, num_gpus=1).total
        print(
            f'| {name} | {planned / 1e9:.2f} | {measured / 1e9:.2f} | '
            f'{planned / measured:.2f} |',
            flush=True,
        )


if __name__ == '__main__':
    main()
