"""Time and memory of a pretraining step against slower ways to do the same.

Prints, at the width of 0.1b, images/s and peak memory of

* the step as it is,
* (a) the same losses with masked tokens kept in the encoder, one pass per view,
* the reconstruction alone,
* (b) mmpretrain's MAE with an encoder of as many parameters, equal numbers of tokens,

the share of the measured matmul peak that the step reaches, and the images/s that one
loader worker makes. ``python tools/benchmark/pretrain_step.py --threads 2``.
"""

import argparse
import ctypes
import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np
import torch
from mmengine.logging import MMLogger
from torch import Tensor, nn

from sapiens2_mm.datasets import UnlabeledImageDataset
from sapiens2_mm.engine.planning.flops import count_flops
from sapiens2_mm.models.selfsup.masking import TokenMask
from sapiens2_mm.registry import MODELS

CLOCKS = {'wall': time.perf_counter, 'cpu': time.process_time}
Size = tuple[int, int]  # (height, width)
STEP = 'step'
KEPT = '(a) masked kept, one pass per view'
ALONE = 'reconstruction alone'
HOST = '(b) mmpretrain MAE'


def build_model(args: argparse.Namespace, joint: bool) -> nn.Module:
    """A ``Sapiens2Pretrain``, with all losses or the reconstruction alone."""
    cfg = dict(
        type='sapiens2_mm.Sapiens2Pretrain',
        backbone=dict(
            type='sapiens2_mm.Sapiens2',
            arch=dict(
                embed_dims=768,
                num_layers=args.layers,
                num_heads=12,
                feedforward_channels=3072,
            ),
            img_size=args.size,
            rope_dtype='fp32',
        ),
        neck=dict(type='sapiens2_mm.MAEDecoder', num_layers=args.decoder_layers),
        mask_generator=dict(type='sapiens2_mm.BlockPatchMask'),
        reconstruction_loss=dict(type='sapiens2_mm.PatchReconstructionLoss'),
        num_local_views=4 if joint else 0,
    )
    if joint:
        cfg |= dict(
            head=dict(type='sapiens2_mm.PrototypeHead', num_prototypes=8192),
            contrast_loss=dict(type='sapiens2_mm.ViewContrastLoss'),
            koleo_loss=dict(type='sapiens2_mm.KoLeoLoss'),
            centering=dict(type='sapiens2_mm.EMACentering'),
        )
    model = MODELS.build(cfg)
    model.init_weights()
    return model.train()


class KeepsMasked(nn.Module):
    """The step without the two savings: variant (a).

    Masked tokens are replaced before the first block, not dropped, and every view has
    a pass of its own.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        model.encode_views = self.encode_views
        self.mask_token = nn.Parameter(torch.zeros(model.backbone.embed_dims))

    def loss(self, inputs: list[Tensor]) -> dict[str, Tensor]:
        return self.model.loss(inputs)

    def encode_views(
        self, globals_: Tensor, mask: TokenMask, locals_: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        backbone = self.model.backbone
        prefix = backbone.num_prefix_tokens
        batch = len(globals_) // self.model.num_global_views
        patches, cls_tokens = [], []
        for view, masked, keep in zip(
            globals_.split(batch),
            mask.mask.split(batch),
            mask.ids_keep.split(batch),
            strict=True,
        ):
            tokens, rope, _ = backbone.embed(view)
            kept = torch.where(masked[..., None], self.mask_token, tokens[:, prefix:])
            tokens = torch.cat((tokens[:, :prefix], kept), dim=1)
            tokens = backbone.encode(tokens, rope)[-1]
            index = keep[..., None].expand(-1, -1, tokens.shape[2])
            patches.append(tokens[:, prefix:].gather(1, index))
            cls_tokens.append(tokens[:, 0])
        for view in locals_.split(batch):
            tokens, rope, _ = backbone.embed(view)
            cls_tokens.append(backbone.encode(tokens, rope)[-1][:, 0])
        return torch.cat(patches), torch.cat(cls_tokens)


def build_mmpretrain_mae(args: argparse.Namespace) -> tuple[nn.Module, int]:
    """mmpretrain's MAE with equal encoder parameters, and the side of its images."""
    side = 16 * round((args.size[0] * args.size[1] / 256) ** 0.5)
    model = MODELS.build(
        dict(
            type='mmpretrain.MAE',
            _scope_='mmpretrain',
            backbone=dict(
                type='mmpretrain.MAEViT',
                # two matrices of 4608 hidden channels are as large as three of 3072
                arch=dict(
                    embed_dims=768,
                    num_layers=args.layers,
                    num_heads=12,
                    feedforward_channels=4608,
                ),
                img_size=side,
            ),
            neck=dict(
                type='mmpretrain.MAEPretrainDecoder',
                num_patches=(side // 16) ** 2,
                embed_dim=768,
                decoder_embed_dim=512,
                decoder_depth=args.decoder_layers,
                decoder_num_heads=16,
            ),
            head=dict(
                type='mmpretrain.MAEPretrainHead',
                norm_pix=True,
                patch_size=16,
                loss=dict(type='mmpretrain.PixelReconstructionLoss', criterion='L2'),
            ),
        )
    )
    model.init_weights()
    return model.train(), side


def make_step(model: nn.Module, *inputs: object) -> Callable[[], None]:
    """Forward, backward, clip, AdamW, teacher."""
    trained = [param for param in model.parameters() if param.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=True)
    inner = getattr(model, 'model', model)

    def step() -> None:
        optimizer.zero_grad()
        total = sum(
            value for name, value in model.loss(*inputs).items() if 'loss' in name
        )
        total.backward()
        nn.utils.clip_grad_norm_(trained, 5.0)
        optimizer.step()
        if hasattr(inner, 'after_step'):
            inner.after_step()

    return step


def seconds(
    step: Callable[[], object], repeats: int, clock: Callable[[], float]
) -> float:
    """Least time of a call after one that warms up: other work only adds to it."""
    step()
    times = []
    for _ in range(repeats):
        start = clock()
        step()
        times.append(clock() - start)
    return min(times)


class PeakMemory:
    """Largest resident memory of the process inside the block, above ``base``, GiB.

    Args:
        base: of the process before it had a model, GiB.
    """

    def __init__(self, base: float) -> None:
        self.base = base

    def __enter__(self) -> 'PeakMemory':
        Path('/proc/self/clear_refs').write_text('5')  # resets VmHWM
        return self

    def __exit__(self, *error: object) -> None:
        self.gib = resident('VmHWM') - self.base


def resident(key: str = 'VmRSS') -> float:
    """Resident memory of this process, GiB; the peak for ``'VmHWM'``."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what earlier models have left behind
    for line in Path('/proc/self/status').read_text().splitlines():
        if line.startswith(key + ':'):
            return int(line.split()[1]) / 2**20
    raise RuntimeError(f'/proc/self/status has no {key}')


def matmul_peak(num_tokens: int, clock: Callable[[], float]) -> float:
    """FLOP/s of the encoder's largest product in float32, kept up for seconds."""
    x, weight = torch.randn(num_tokens, 768), torch.randn(6144, 768)
    flops = 10 * 2 * num_tokens * 768 * 6144
    return flops / seconds(lambda: [x @ weight.T for _ in range(10)], 3, clock)


def mask_times(
    model: nn.Module, grid: Size, clock: Callable[[], float], batch_size: int = 32
) -> tuple[float, float]:
    """Milliseconds of the training process: masks drawn there, and by the workers."""
    generator, num_views = model.mask_generator, model.num_global_views
    drawn = [generator.draw((n,), num_views, grid) for n in range(batch_size)]

    def stack() -> TokenMask:
        return TokenMask.from_ids_keep(np.stack(drawn, 1), grid[0] * grid[1])

    here = seconds(lambda: generator(num_views, batch_size, grid), 5, clock)
    return 1000 * here, 1000 * seconds(stack, 5, clock)


def loader_speed(
    model: nn.Module,
    size: Size,
    local: Size,
    num_images: int,
    clock: Callable[[], float],
) -> float:
    """Images/s of one worker: read a JPEG of 1600x1200, make views and masks, pack."""
    pipeline = [
        dict(
            type='sapiens2_mm.MultiViewCrop',
            views=[
                dict(num_views=2, size=size, area=(0.5, 1.0)),
                dict(
                    num_views=4,
                    size=local,
                    area=(0.2, 0.7),
                    jitter_prob=0.8,
                    grayscale_prob=0.2,
                    blur_prob=0.5,
                    solarize_prob=0.2,
                ),
            ],
        ),
        dict(type='sapiens2_mm.DrawTokenMasks'),
        dict(
            type='mmpretrain.PackInputs',
            algorithm_keys=('ids_keep',),
            meta_keys=('img_path', 'skipped'),
        ),
    ]
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(4):
            image = rng.integers(0, 256, (200, 150, 3), dtype=np.uint8)
            image = cv2.resize(image, (1200, 1600), interpolation=cv2.INTER_CUBIC)
            cv2.imwrite(f'{folder}/{number}.jpg', image)
        dataset = UnlabeledImageDataset(folder, pipeline=pipeline)
        dataset.pipeline.transforms[1].follow(model)
        dataset[0, 0]
        start = clock()
        for draw in range(num_images):
            dataset[draw % 4, draw]
        return num_images / (clock() - start)


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Benchmark the pretraining step')
    parser.add_argument('--size', type=int, nargs=2, default=(1024, 768))
    parser.add_argument('--local-size', type=int, nargs=2, default=(512, 384))
    parser.add_argument('--batch-size', type=int, default=1)
    parser.add_argument('--layers', type=int, default=12)
    parser.add_argument('--decoder-layers', type=int, default=8)
    parser.add_argument('--repeats', type=int, default=3)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument(
        '--clock',
        choices=CLOCKS,
        default='wall',
        help='cpu counts processor seconds: with one thread, right on a busy machine',
    )
    args = parser.parse_args(argv)
    args.size, args.local_size = tuple(args.size), tuple(args.local_size)
    return args


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    torch.set_num_threads(args.threads)
    cv2.setNumThreads(0)
    MMLogger.get_current_instance().setLevel('ERROR')
    batch, clock = args.batch_size, CLOCKS[args.clock]
    big = [torch.randn(batch, 3, *args.size) for _ in range(2)]
    views = big + [torch.randn(batch, 3, *args.local_size) for _ in range(4)]

    results: dict[str, float] = {}

    base = resident()

    def measure(name: str, model: nn.Module, *inputs: object) -> None:
        resident()  # gives back what the last model used
        with PeakMemory(base) as memory:
            results[name] = seconds(make_step(model, *inputs), args.repeats, clock)
        print(
            f'{name:40} {results[name]:8.2f} s/step '
            f'{batch / results[name]:8.3f} images/s {memory.gib:6.2f} GiB',
            flush=True,
        )

    model = build_model(args, joint=True)
    with count_flops() as counter:
        make_step(model, views)()
    flops = counter.get_total_flops()
    model.zero_grad()
    measure(STEP, model, views)
    model.zero_grad()
    num_tokens = 6 * batch * (args.size[0] * args.size[1] // 1024 + 9)
    peak = matmul_peak(num_tokens, clock)
    measure(KEPT, KeepsMasked(model), views)
    del model
    model = build_model(args, joint=False)
    measure(ALONE, model, big)
    mae, side = build_mmpretrain_mae(args)
    measure(HOST, mae, torch.randn(2 * batch, 3, side, side), None)

    time_ = results[STEP]
    print(f'(a) / step: {results[KEPT] / time_:.2f}')
    print(f'(b) / reconstruction alone: {results[HOST] / results[ALONE]:.2f}')
    print(
        f'step: {flops / 1e12:.2f} TFLOP, {flops / time_ / 1e9:.1f} GFLOP/s; matmul '
        f'peak {peak / 1e9:.1f} GFLOP/s; share {flops / time_ / peak:.2f}'
    )
    torch.set_num_threads(1)
    grid = model.token_grid(big[0])
    here, workers = mask_times(model, grid, clock)
    print(
        f'masks of 32 x 2 views: {here:.1f} ms of the training process if it draws '
        f'them, {workers:.1f} ms if loader workers do'
    )
    speed = loader_speed(model, args.size, args.local_size, 24, clock)
    print(f'loader: {speed:.2f} images/s per worker')


if __name__ == '__main__':
    main()
