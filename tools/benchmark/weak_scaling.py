"""Time of a data-parallel step over the number of processes, on one machine's CPU.

Each process has one thread, a batch of its own and gloo. With perfect weak scaling the
time stays; with more processes than cores it cannot, and the share of a core that each
gets is printed beside it.

    python tools/benchmark/weak_scaling.py --processes 1 2 4 [--picture OUT.png]
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence

import torch
from torch import distributed as dist
from torch import multiprocessing
from torch.nn.parallel import DistributedDataParallel

from sapiens2_mm.models import Sapiens2

SIZE = (256, 192)


def work(rank: int, world_size: int, folder: str, args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    dist.init_process_group(
        'gloo', init_method=f'file://{folder}/store', rank=rank, world_size=world_size
    )
    arch = dict(num_layers=args.layers, num_heads=12, feedforward_channels=3072)
    model = Sapiens2(dict(arch, embed_dims=768), img_size=SIZE, rope_dtype='fp32')
    model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    images = torch.randn(args.batch_size, 3, *SIZE)
    seconds = []
    for _ in range(args.steps + 1):
        dist.barrier()
        start = time.perf_counter()
        model(images)[0].square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - start)
    if rank == 0:
        with open(f'{folder}/seconds', 'w') as file:
            file.write(str(statistics.median(seconds[1:])))
    dist.destroy_process_group()


def measure(world_size: int, args: argparse.Namespace) -> float:
    """Median seconds of a step, after one that warms up."""
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(work, (world_size, folder, args), nprocs=world_size)
        with open(f'{folder}/seconds') as file:
            return float(file.read())


def draw(seconds: dict[int, float], num_cores: int, path: str) -> None:
    from matplotlib.figure import Figure

    numbers, times = list(seconds), list(seconds.values())
    axes = Figure((5.5, 4), layout='constrained').subplots()
    axes.plot(numbers, times, marker='o', label='measured')
    ideal = [times[0] * max(1, n / num_cores) for n in numbers]
    axes.plot(numbers, ideal, linestyle=':', label=f'perfect on {num_cores} cores')
    axes.set(xlabel='processes', ylabel='seconds per step', xticks=numbers)
    axes.set_ylim(bottom=0)
    axes.legend()
    axes.figure.savefig(path, dpi=120)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--processes', type=int, nargs='+', default=[1, 2, 4])
    parser.add_argument('--batch-size', type=int, default=2, help='of each process')
    parser.add_argument('--layers', type=int, default=4)
    parser.add_argument('--steps', type=int, default=5)
    parser.add_argument('--picture', help='PNG of the times')
    args = parser.parse_args(argv)
    num_cores = len(os.sched_getaffinity(0))
    print(f'{num_cores} cores, load {os.getloadavg()[0]:.1f} before')
    print('| processes | s per step | images/s | efficiency | cores per process |')
    print('| --- | --- | --- | --- | --- |')
    seconds: dict[int, float] = {}
    for number in args.processes:
        seconds[number] = measure(number, args)
        rate = number * args.batch_size / seconds[number]
        share = min(1, num_cores / number)
        first = next(iter(seconds.values()))
        print(
            f'| {number} | {seconds[number]:.2f} | {rate:.2f} | '
            f'{first / seconds[number]:.2f} | {share:.2f} |',
            flush=True,
        )
    if args.picture:
        draw(seconds, num_cores, args.picture)


if __name__ == '__main__':
    main()
