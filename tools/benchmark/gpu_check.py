"""The parts of gpu_check.sh; ``--dry-run`` runs them tiny on the CPU."""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from sapiens2_mm.engine.parallelize import compile_blocks
from sapiens2_mm.engine.planning.dry_run import build_model, loss_of, views_of
from sapiens2_mm.engine.planning.flops import count_train_flops, peak_flops
from sapiens2_mm.models import Sapiens2, Sapiens2PoseHead, Sapiens2SegHead
from sapiens2_mm.models.codecs.udp_heatmap import decode_udp_heatmaps
from sapiens2_mm.models.heads import AlbedoHead, NormalHead, PointmapHead
from sapiens2_mm.models.layers import GroupedQueryAttention
from sapiens2_mm.registry import OPTIMIZERS

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / 'tests/data'
POSE = 'configs/pose/sapiens2-{}_udp-heatmap_8xb{}_humans308-1024x768.py'
CONFIGS = dict(
    pose_04b=POSE.format('0.4b', '6-10k'),
    pose_1b=POSE.format('1b', '7-20k'),
    pretrain='configs/pretrain/'
    'sapiens2-0.1b_mae-contrast_64xb32-500k_images-1024x768.py',
)
TINY = dict(embed_dims=64, num_layers=2, num_heads=2, feedforward_channels=128)
# Of the networks that made the files in tests/data.
ARCH = dict(
    embed_dims=64,
    num_layers=18,
    num_heads=4,
    feedforward_channels=128,
    num_tokenizer_layers=2,
)
DENSE = dict(
    in_channels=64,
    upsample_channels=(32, 16, 16, 8),
    conv_out_channels=(16, 8),
    conv_kernel_sizes=(3, 3),
)
LARGEST_ERROR = {torch.float32: 5e-3, torch.bfloat16: 6e-2}  # relative, in the mean


def fixtures(device: torch.device, dry: bool) -> None:
    """Outputs of backbones and heads against the files, in float32 and bfloat16."""
    worst = {}
    for name, (module, weights, feats, expected) in reference_cases().items():
        module.load_state_dict(weights)
        for dtype, largest in LARGEST_ERROR.items():
            module.eval().to(device, dtype)
            with torch.no_grad():
                out = module(feats.to(device, dtype))
            error = relative_error(out, expected)
            print(f'{name:12} {str(dtype)[6:]:9} relative error {error:.1e}')
            if error > largest:
                worst[name] = error
    if worst:
        raise SystemExit(f'further from the fixtures than {LARGEST_ERROR}: {worst}')


def reference_cases() -> dict[str, tuple[nn.Module, dict, Tensor, Tensor]]:
    """Name -> module, weights, input and output of the files."""
    cases = {}
    for rope in ('bf16', 'fp32'):
        tensors = load_file(FIXTURES / 'backbone_1k_rope_bf16.safetensors')
        weights, image = state_of(tensors), tensors['input']
        model = Sapiens2(ARCH, img_size=(128, 96), rope_dtype=rope)
        if rope == 'fp32':
            tensors = load_file(FIXTURES / 'backbone_1k_rope_fp32.safetensors')
            weights['rope_embed.periods'] = model.rope_embed.periods
        cases[f'rope {rope}'] = first(model), weights, image, tensors['raw']
    tensors = load_file(FIXTURES / 'backbone_4k.safetensors')
    model = Sapiens2(ARCH, img_size=(512, 384), use_tokenizer=True, out_type='featmap')
    weights = load_file(FIXTURES / 'backbone_4k_weights.safetensors')
    cases['4k'] = first(model), weights, tensors['input'], tensors['featmap']
    scale = dict(
        feature_size=(16, 16),
        scale_conv_out_channels=(32, 16, 8),
        scale_hidden_channels=(16, 8),
    )
    heads = dict(
        pose=Sapiens2PoseHead(
            64,
            308,
            deconv_out_channels=(32, 24),
            deconv_kernel_sizes=(4, 4),
            conv_out_channels=(24, 16, 16),
            conv_kernel_sizes=(1, 1, 1),
        ),
        seg=Sapiens2SegHead(
            64, 29, deconv_out_channels=(32, 24, 16, 16), conv_out_channels=(16, 16)
        ),
        normal=NormalHead(**DENSE),
        albedo=AlbedoHead(**DENSE),
        pointmap=PointmapHead(**DENSE, **scale),
    )
    for name, head in heads.items():
        tensors = load_file(FIXTURES / f'head_{name}.safetensors')
        expected = tensors['pointmap' if name == 'pointmap' else 'out']
        module = first(head, wrap=True)
        cases[name] = module, state_of(tensors), tensors['feat'], expected
    return cases


def state_of(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    prefix = 'state_dict.'
    return {k.removeprefix(prefix): v for k, v in tensors.items() if prefix in k}


def first(module: nn.Module, wrap: bool = False) -> nn.Module:
    """Let a module take and give one tensor."""
    forward = module.forward

    def of_tensor(x: Tensor) -> Tensor:
        out = forward((x,) if wrap else x)
        return out[0] if isinstance(out, tuple) else out

    module.forward = of_tensor
    return module


def relative_error(out: Tensor, expected: Tensor) -> float:
    return float((out.float().cpu() - expected).norm() / expected.norm())


class Operators(TorchDispatchMode):
    """Names of the attention operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if 'attention' in str(func):
            self.names.add(str(func).removeprefix('aten._scaled_dot_product_'))
        return func(*args, **(kwargs or {}))


def attention(device: torch.device, dry: bool) -> None:
    """A fused kernel serves every head size, with shared keys and without."""
    tokens = 64 if dry else 3081
    for dims, heads in ((1024, 16), (1280, 16), (1536, 24), (2432, 32)):
        for shared in (1, 2):
            layer = GroupedQueryAttention(dims, heads, heads // shared)
            layer.to(device, torch.bfloat16)
            x = torch.randn(1, tokens, dims, device=device, dtype=torch.bfloat16)
            with Operators() as operators:
                layer(x).sum().backward()
            names = ', '.join(sorted(operators.names))
            print(f'C {dims}, {heads} heads, {heads // shared} of keys: {names}')
            if 'flash' not in names and 'cudnn' not in names:
                raise SystemExit('attention stores all scores')


def steps(device: torch.device, dry: bool) -> None:
    """Pose of 0.4b and 1b at 1024x768 in bf16, each block as it is and compiled."""
    for name in ('pose_04b', 'pose_1b'):
        for compiled in (False, True):
            cfg, model, inputs = build(name, 8, device, dry)
            if compiled:
                compile_blocks(model)
            speed(f'{name}, compiled {compiled}', cfg, model, inputs, device, dry)


def pretraining(device: torch.device, dry: bool) -> None:
    """The joint step of 0.1b."""
    cfg, model, inputs = build('pretrain', 8, device, dry)
    speed('pretraining of 0.1b', cfg, model, inputs, device, dry, forward=False)


def build(
    name: str, batch_size: int, device: torch.device, dry: bool
) -> tuple[Config, nn.Module, Tensor | list[Tensor]]:
    """A model of a config and its input; tiny for a dry run."""
    cfg = Config.fromfile(ROOT / CONFIGS[name])
    init_default_scope(cfg.default_scope)
    if dry:
        batch_size, cfg.model.backbone.arch = 2, TINY
        cfg.model.backbone.img_size = (128, 96)
        if name == 'pretrain':
            cfg.model.head.num_prototypes = 64
            whole, part = cfg.train_dataloader.dataset.pipeline[0].views
            whole.size, part.size = (128, 96), (64, 48)
        else:
            cfg.model.head.in_channels = 64
    model = build_model(cfg.model).to(device)
    views = [size for number, size in views_of(cfg) for _ in range(number)]
    inputs = [torch.randn(batch_size, 3, *size, device=device) for size in views]
    return cfg, model, inputs if len(inputs) > 1 else inputs[0]


def speed(
    name: str,
    cfg: Config,
    model: nn.Module,
    inputs: Tensor | list[Tensor],
    device: torch.device,
    dry: bool,
    forward: bool = True,
) -> None:
    """Print images/s, MFU and peak memory of a forward pass and of a training step."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = OPTIMIZERS.build(dict(cfg.optim_wrapper.optimizer, params=trained))
    autocast = torch.autocast(device.type, torch.bfloat16)

    def train() -> None:
        with autocast:
            loss = loss_of(model, inputs)
        loss.backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()

    def infer() -> None:
        with torch.no_grad(), autocast:
            model(inputs, None, mode='tensor')

    batch_size = len(inputs[0]) if isinstance(inputs, list) else len(inputs)
    flops = batch_size * count_train_flops(cfg)
    peak = peak_flops(device, torch.bfloat16)
    # Of a forward pass: a third, but for the patches, whose images need no gradient.
    runs = [('forward', infer, flops / 3)] if forward else []
    for kind, run, work in [*runs, ('step', train, flops)]:
        if device.type == 'cuda':
            torch.cuda.reset_peak_memory_stats()
        seconds = time_of(run, device, 1 if dry else 5)
        mfu = f'MFU {work / seconds / peak:.3f}' if peak else 'MFU unknown'
        print(f'{name}, {kind}: {batch_size / seconds:.2f} images/s, {mfu}', end='')
        if device.type == 'cuda':
            print(f', peak {torch.cuda.max_memory_allocated() / 1e9:.1f} GB', end='')
        print(flush=True)


def decoding(device: torch.device, dry: bool) -> None:
    """308 heatmaps of 256x192 to keypoints."""
    shape = (2, 308, 64, 48) if dry else (32, 308, 256, 192)
    maps = torch.rand(shape, device=device)
    size = (4 * shape[3], 4 * shape[2])
    seconds = time_of(lambda: decode_udp_heatmaps(maps, size), device, 1 if dry else 5)
    print(f'{1000 * seconds / shape[0]:.2f} ms per person')


def fsdp2(device: torch.device, dry: bool) -> None:
    """A run of the tiny pretraining, sharded over one process."""
    config = 'sapiens2-tiny_mae-contrast_1xb16_synthetic-humans-128x96.py'
    options = [
        'train_cfg.max_iters=6',
        'default_hooks.logger.interval=2',
        'strategy.type=sapiens2_mm.FSDP2Strategy',
        'strategy.param_dtype=bfloat16',
        f'train_dataloader.dataset.data_root={FIXTURES / "synthetic_humans"}',
        'train_dataloader.batch_size=4',
        'train_dataloader.num_workers=0',
    ]
    with tempfile.TemporaryDirectory() as folder:
        tool, path = ROOT / 'tools/train.py', ROOT / 'configs/pretrain' / config
        command = [sys.executable, tool, path, '--work-dir', folder]
        command += ['--cfg-options', *options]
        done = subprocess.run(command, text=True, capture_output=True)
    for line in done.stdout.splitlines():
        if 'Iter(train)' in line:
            print(line[line.index('Iter(train)') :])
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])


def time_of(run: Callable[[], Any], device: torch.device, repeats: int) -> float:
    """Seconds of a call after two that warm up."""
    wait = torch.cuda.synchronize if device.type == 'cuda' else lambda: None
    for _ in range(2):
        run()
    wait()
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    wait()
    return (time.perf_counter() - start) / repeats


PARTS = dict(
    fixtures=fixtures,
    attention=attention,
    steps=steps,
    pretraining=pretraining,
    decoding=decoding,
    fsdp2=fsdp2,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('part', choices=PARTS)
    parser.add_argument('--dry-run', action='store_true')
    args = parser.parse_args()
    torch.manual_seed(0)
    PARTS[args.part](torch.device('cpu' if args.dry_run else 'cuda'), args.dry_run)


if __name__ == '__main__':
    main()
