"""Cost of the 4K backbone from 1K to 4K, against plain global attention.

Each form and size runs in a process of its own. Printed are processor seconds of the
local stage (patches and windows) and of the blocks, and the peak memory on top of what
stood before the first image::

    python tools/benchmark/backbone_4k.py --plot growth.png
    python tools/benchmark/backbone_4k.py --arch 0.1b --forms window    # a minute
    python tools/benchmark/backbone_4k.py --forms window --train

``window`` has the window tokenizer, ``global`` gives every patch to the blocks: the
same grid of patches, 16 times as many tokens.
"""

import argparse
import multiprocessing
import resource
import sys
import time
from pathlib import Path
from typing import NamedTuple

import torch
from mmengine.logging import MMLogger

from sapiens2_mm.engine.parallelize import recompute
from sapiens2_mm.models import Sapiens2

ARCHS = {
    'tiny': dict(embed_dims=96, num_layers=2, num_heads=3, feedforward_channels=384),
    '0.1b': 'sapiens2_0.1b',
}
SIZES = {'1K': (1024, 768), '2K': (2048, 1536), '4K': (4096, 3072)}
FORMS = ('window', 'global')


class Cost(NamedTuple):
    """Processor seconds, and MiB on top."""

    local: float
    blocks: float
    memory: float


def measure(
    form: str, size: tuple[int, int], arch: str, train: bool, window_bytes: int
) -> Cost:
    """Cost of one image, forward or a training step, in this process."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    MMLogger.get_current_instance().setLevel('ERROR')
    options = dict(use_tokenizer=form == 'window', window_bytes=window_bytes)
    model = Sapiens2(ARCHS[arch], img_size=size, **options)
    recompute(model, 'full' if train else 'none')
    model.init_weights()
    model.train(train)
    with torch.set_grad_enabled(train):
        run(model, torch.zeros(1, 3, 64, 64))  # load libraries
        before, image = peak(), torch.randn(1, 3, *size)
        local, blocks = run(model, image)
    return Cost(local, blocks, (peak() - before) / 2**20)


def run(model: Sapiens2, image: torch.Tensor) -> tuple[float, float]:
    """Processor seconds of the local stage and of the rest, its gradient included."""
    start = time.process_time()
    tokens, rope, _ = model.embed(image)
    middle = time.process_time()
    (out,) = model.encode(tokens, rope)
    if out.requires_grad:
        out.square().mean().backward()
    return middle - start, time.process_time() - middle


def peak() -> int:
    """Largest resident memory of this process so far, bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def table(costs: dict[tuple[str, str], Cost]) -> list[str]:
    """Lines with all numbers, and how they grow from size to size."""
    lines = [
        'form    size    patches   local s  blocks s   total s    peak MiB  growth'
    ]
    last: dict[str, float] = {}
    for (form, name), cost in costs.items():
        height, width = SIZES[name]
        total = cost.local + cost.blocks
        growth = f'{total / last[form]:6.1f}x' if form in last else ''
        last[form] = total
        lines.append(
            f'{form:6s}  {name:4s} {height * width // 256:10d} {cost.local:9.2f} '
            f'{cost.blocks:9.2f} {total:9.2f} {cost.memory:11.0f}  {growth}'.rstrip()
        )
    return lines


def plot(costs: dict[tuple[str, str], Cost], path: Path) -> None:
    """Time and memory over pixels, both axes logarithmic."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), layout='constrained')
    for form in dict.fromkeys(form for form, _ in costs):
        names = [name for other, name in costs if other == form]
        pixels = [SIZES[name][0] * SIZES[name][1] / 1e6 for name in names]
        found = [costs[form, name] for name in names]
        axes[0].plot(pixels, [c.local + c.blocks for c in found], 'o-', label=form)
        axes[1].plot(pixels, [c.memory for c in found], 'o-', label=form)
        if form == 'window':
            label = 'local stage of window'
            axes[0].plot(pixels, [c.local for c in found], 'o--', label=label)
    for axis, label in zip(axes, ('processor seconds', 'peak MiB'), strict=True):
        axis.set(xscale='log', yscale='log', xlabel='megapixels', ylabel=label)
        axis.grid(True, which='both', alpha=0.3)
        axis.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--arch', choices=ARCHS, default='tiny')
    parser.add_argument('--forms', nargs='+', choices=FORMS, default=FORMS)
    parser.add_argument('--sizes', nargs='+', choices=SIZES, default=list(SIZES))
    parser.add_argument('--train', action='store_true', help='forward and backward')
    parser.add_argument(
        '--window-bytes', type=int, default=2**30, help='of Sapiens2, a budget'
    )
    parser.add_argument('--plot', type=Path, help='a picture of the growth')
    args = parser.parse_args()
    costs = {}
    context = multiprocessing.get_context('spawn')
    for form in args.forms:
        for name in args.sizes:
            with context.Pool(1) as pool:
                options = (args.arch, args.train, args.window_bytes)
                costs[form, name] = pool.apply(measure, (form, SIZES[name], *options))
    sys.stdout.write('\n'.join(table(costs)) + '\n')
    if args.plot:
        plot(costs, args.plot)


if __name__ == '__main__':
    main()
