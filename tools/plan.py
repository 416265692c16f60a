"""Plan the memory and the time of a training before there is a machine.

For each way to shard and to compute activations anew, the memory of one GPU by parts,
the largest batch that fits, and how long the training takes at a stated MFU. Nothing
is computed: a model of any size takes seconds to minutes.

    python tools/plan.py CONFIG --gpus 256 --gpu-memory 80GB --device H100 --mfu 0.4
"""

import argparse
import dataclasses
import re

import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope

from sapiens2_mm.cfg_options import CfgOptions
from sapiens2_mm.engine.planning.flops import listed_peak
from sapiens2_mm.engine.planning.memory import Memory, loader_memory
from sapiens2_mm.engine.planning.plans import Plan, Planner, best

_UNITS = dict(GB=1e9, GiB=2**30)


def parse_memory(text: str) -> float:
    """Bytes of a size such as ``80GB`` or ``141 GiB``."""
    match = re.fullmatch(r'([\d.]+) ?(GB|GiB)', text)
    if not match:
        raise argparse.ArgumentTypeError(f'expected 80GB or 80GiB, got {text!r}')
    return float(match[1]) * _UNITS[match[2]]


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('config', help='path of a training config')
    parser.add_argument('--gpus', type=int, default=8)
    parser.add_argument('--gpu-memory', type=parse_memory, default=80e9)
    parser.add_argument(
        '--reserve',
        type=float,
        default=0.1,
        help='share of the memory left for the driver, NCCL and fragmentation',
    )
    parser.add_argument(
        '--batch-size', type=int, help="per GPU; the config's if absent"
    )
    parser.add_argument(
        '--device', default='H100', help='name of the GPU, for its peak'
    )
    parser.add_argument('--mfu', type=float, default=0.4, help='assumed, 0 to 1')
    parser.add_argument('--picture', help='PNG of the memory over 8 to 1024 GPUs')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=CfgOptions,
        metavar='KEY=VALUE',
        help='override settings of the config',
    )
    return parser.parse_args()


def row(plan: Plan, limit: float) -> str:
    cells = [plan.sharding, plan.mode]
    if plan.memory is None:
        cells += ['-'] * len(dataclasses.fields(Memory)) + ['states alone too large']
    else:
        values = [*vars(plan.memory).values(), plan.memory.total]
        cells += [f'{value / 1e9:.1f}' for value in values]
    fits = 'yes' if plan.fits else 'no'
    return ' | '.join([*cells, fits, str(plan.largest_batch)])


def main() -> None:
    args = parse_args()
    cfg = Config.fromfile(args.config)
    if args.cfg_options:
        cfg.merge_from_dict(args.cfg_options)
    init_default_scope(cfg.get('default_scope', 'sapiens2_mm'))
    batch_size = args.batch_size or cfg.train_dataloader.batch_size
    limit = args.gpu_memory * (1 - args.reserve)
    planner = Planner(cfg)
    plans = planner.plans(args.gpus, limit, batch_size)
    parts = [field.name for field in dataclasses.fields(Memory)]
    print(
        f'GB of one of {args.gpus} GPUs at {batch_size} images each; usable '
        f'{limit / 1e9:.1f} of {args.gpu_memory / 1e9:.1f}'
    )
    titles = ['sharding', 'recompute', *parts, 'total', 'fits', 'largest batch']
    print('| ' + ' | '.join(titles) + ' |\n|' + ' --- |' * len(titles))
    for plan in plans:
        print(f'| {row(plan, limit)} |')
    ready = loader_memory(cfg, batch_size) / 1e9
    print(f'\nhost memory of the loader per GPU: {ready:.1f} GB of images held ready')
    plan = best(plans)
    if plan is None:
        print('nothing fits; take more GPUs or a smaller batch or model')
    else:
        describe(plan, planner, args)
    if args.picture:
        from sapiens2_mm.engine.planning.picture import draw_memory

        gpus = [8 * 2**power for power in range(8)]
        draw_memory(planner, gpus, batch_size, limit, args.picture)


def describe(plan: Plan, planner: Planner, args: argparse.Namespace) -> None:
    batch_size = min(plan.batch_size, plan.largest_batch)
    options = planner_options(plan, planner, batch_size)
    print(f'plan: {plan.sharding}, {plan.mode}, {batch_size} images per GPU')
    print(f'  --cfg-options {" ".join(options)}')
    peak = listed_peak(args.device, torch.bfloat16 if planner.mixed else torch.float32)
    if peak is None:
        print(f'no time: the peak of {args.device!r} is not known')
        return
    seconds = planner.step_seconds(plan.batch_size, peak, args.mfu)
    iterations = planner.cfg.train_cfg.max_iters
    print(
        f'time at MFU {args.mfu:.2f} of {peak / 1e12:.0f} TFLOP/s: '
        f'{planner.flops_per_image / 1e12:.1f} TFLOP per image, {seconds:.2f} s per '
        f'{plan.batch_size * args.gpus} images, '
        f'{iterations * seconds / 86400:.1f} days for {iterations} iterations'
    )


def planner_options(plan: Plan, planner: Planner, batch_size: int) -> list[str]:
    options = [
        *plan.options(planner.mixed),
        f'train_dataloader.batch_size={batch_size}',
    ]
    if batch_size < plan.batch_size:
        parts = -(-plan.batch_size // batch_size)
        options.append(f'optim_wrapper.accumulative_counts={parts}')
    return options


if __name__ == '__main__':
    main()
