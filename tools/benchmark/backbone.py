"""Time the backbone against transformers' and against this machine's matmul peak.

Everything is measured in one run, in turns, so that a busy or slow machine changes
all numbers alike. Needs ``pip install transformers``.

    python tools/benchmark/backbone.py --threads 2 --repeats 5
    python tools/benchmark/backbone.py --threads 1 --clock cpu    # on a busy machine
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from sapiens2_mm.engine.planning.dry_run import dry_run
from sapiens2_mm.engine.planning.flops import count_flops
from sapiens2_mm.models.backbones import Sapiens2

ARCH = 'sapiens2_0.1b'
DTYPES = {'fp32': torch.float32, 'bf16': torch.bfloat16}
CLOCKS = {'wall': time.perf_counter, 'cpu': time.process_time}


def transformers_backbone(ours: Sapiens2) -> nn.Module:
    """transformers' model of the same size and weights."""
    from transformers import Sapiens2Config, Sapiens2Model

    blocks = ours.blocks
    config = Sapiens2Config(
        hidden_size=ours.embed_dims,
        num_hidden_layers=len(blocks),
        num_attention_heads=blocks[0].attn.num_heads,
        num_key_value_heads_per_layer=[b.attn.num_kv_heads for b in blocks],
        intermediate_size=blocks[0].ffn.w3.in_features,
        patch_size=ours.patch_size,
        image_size=list(ours.img_size),
        attn_implementation='sdpa',
    )
    # Its built-in conversion reads the official names, which are ours.
    return Sapiens2Model.from_pretrained(
        None, config=config, state_dict=ours.state_dict()
    ).eval()


def measure(
    runs: dict[str, Callable], repeats: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Median seconds of each run; one untimed round, then ``repeats`` rounds."""
    times = {name: [] for name in runs}
    for turn in range(repeats + 1):
        for name, run in runs.items():
            start = clock()
            run()
            if turn:
                times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}


@torch.inference_mode()
def compare(
    dtype_name: str,
    img_size: tuple[int, int],
    repeats: int,
    clock: Callable[[], float],
) -> None:
    """Print the numbers of one dtype."""
    dtype = DTYPES[dtype_name]
    ours = Sapiens2(ARCH, img_size=img_size, rope_dtype='fp32').eval()
    released = Sapiens2(ARCH, img_size=img_size).eval()
    theirs = transformers_backbone(ours)
    ours, released, theirs = (m.to(dtype) for m in (ours, released, theirs))
    image = torch.randn(1, 3, *img_size, dtype=dtype)
    side = 3072
    left, right = torch.randn(2, side, side, dtype=dtype)
    error = (ours(image)[0] - theirs(image).last_hidden_state).abs().max()
    seconds = measure(
        {
            'ours, rope fp32': lambda: ours(image),
            'ours, rope bf16': lambda: released(image),
            'transformers': lambda: theirs(image),
            'matmul': lambda: left @ right,
        },
        repeats,
        clock,
    )
    with dry_run(), count_flops() as counter:
        Sapiens2(ARCH, img_size=img_size).eval()(torch.empty(1, 3, *img_size))
    flops = counter.get_total_flops()
    peak = 2 * side**3 / seconds.pop('matmul')
    print(f'\n{ARCH} {img_size[0]}x{img_size[1]}, batch 1, {dtype_name}')
    print(f'  {flops / 1e9:.0f} GFLOP; matmul {side}: {peak / 1e9:.1f} GFLOP/s')
    print(f'  largest difference from transformers: {error:.1e}')
    for name, value in seconds.items():
        print(
            f'  {name:16s} {value:7.3f} s  {flops / value / 1e9:6.1f} GFLOP/s  '
            f'{flops / value / peak:.2f} of matmul  '
            f'{value / seconds["transformers"]:.3f} of transformers'
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--threads', type=int, default=torch.get_num_threads())
    parser.add_argument('--repeats', type=int, default=5)
    parser.add_argument(
        '--clock',
        choices=CLOCKS,
        default='wall',
        help='cpu: processor seconds of all threads, which waiting does not change',
    )
    parser.add_argument('--dtypes', nargs='+', choices=DTYPES, default=list(DTYPES))
    parser.add_argument(
        '--img-size', type=int, nargs=2, default=(1024, 768), metavar=('H', 'W')
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    for dtype_name in args.dtypes:
        compare(dtype_name, tuple(args.img_size), args.repeats, CLOCKS[args.clock])


if __name__ == '__main__':
    main()
