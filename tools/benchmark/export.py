"""How far exported models are from the eager ones, and how fast they are.

``python tools/benchmark/export.py`` exports a tiny model of every task, with
post-processing, in all formats and dtypes, and prints a table: the largest absolute
difference of all outputs (of class ids the share of pixels that differ) for batches of
1, 2 and 5 random pictures, and the seconds of a batch of 5 against eager on the CPU.
The weights are random, the heatmaps vary smoothly, the rotary tables are float32: with
those of bfloat16 a rounding of eager and file may fall to different sides, which the
first row shows. A later model that differs by more than 1e-3 (ONNX) or 1e-5 (torch) in
float32 makes the exit code 1.
"""

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from torch import nn

from sapiens2_mm.apis import init_model
from sapiens2_mm.apis.export import FORMATS, check_parity, export_model, graph_of

TASKS = 'backbone,pose,seg,normal,pointmap,albedo,matting,depth'
DTYPES = dict(fp32=torch.float32, fp16=torch.float16, bf16=torch.bfloat16)
LIMITS = dict(onnx=1e-3, torch=1e-5)  # of float32
MAX_PIXELS = 0.1  # of keypoints: random heatmaps have peaks that are hard to place


def load(task: str, rope_dtype: str) -> nn.Module:
    """The tiny model of a task with two blocks and random weights."""
    folder = Path(__file__).parents[2] / 'configs'
    name = 'normal' if task == 'backbone' else task
    (path,) = (folder / name).glob('*-tiny_*_synthetic-humans-*.py')
    cfg = Config.fromfile(path)
    cfg.model.backbone.arch.num_layers = 2
    cfg.model.backbone.rope_dtype = rope_dtype
    if task == 'backbone':
        cfg = Config(dict(model=cfg.model.backbone, default_scope='sapiens2_mm'))
    model = init_model(cfg)
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        scale = 1 / max(1, parameter[0].numel()) ** 0.5
        parameter.data.normal_(0, scale, generator=generator)
        if parameter.ndim == 1:
            parameter.data += 0.5
    if task == 'pose':  # peaks of noise have no place to find
        tent = torch.tensor([0.25, 0.75, 0.75, 0.25])
        for layer in model.head.deconv_layers:
            if isinstance(layer, nn.ConvTranspose2d):
                layer.weight.data[:] = layer.weight.data[:, :, :1, :1] * 4
                layer.weight.data *= torch.outer(tent, tent)
    if task == 'pointmap':
        model.decode_head.scale_final_layer[-1].bias.data.fill_(2)
    return model


def row(
    folder: Path, task: str, format: str, dtype: str, rope_dtype: str
) -> tuple[list[float], float]:
    """Largest difference of each batch, and the file's share of the eager time."""
    model = load(task, rope_dtype)
    for parameter in model.parameters():
        parameter.data = parameter.data.to(DTYPES[dtype])
    path = folder / f'model.{"onnx" if format == "onnx" else "pt2"}'
    meta = export_model(model, path, format, postprocess=True)
    size = (meta['input']['height'], meta['input']['width'])
    shapes = [(batch, *size) for batch in (1, 2, 5)]
    found = check_parity(path, graph_of(model, postprocess=True), shapes, 3)
    last = found[-1]
    worst = [max(one.difference.values()) for one in found]
    return worst, last.seconds / last.eager_seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--tasks', default=TASKS)
    parser.add_argument('--formats', default=','.join(FORMATS))
    parser.add_argument('--threads', type=int, default=1, help='of torch (1)')
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    MMLogger.get_current_instance().setLevel('ERROR')
    torch.set_num_threads(args.threads)
    sys.stdout.write(
        '| task | format | dtype | batch 1 | batch 2 | batch 5 | time / eager |\n'
        '|---|---|---|---|---|---|---|\n'
    )
    wanted = [('backbone', 'onnx', 'fp32', 'bf16')]
    wanted += [
        (task, format, dtype, 'fp32')
        for dtype in DTYPES
        for task in args.tasks.split(',')
        for format in args.formats.split(',')
    ]
    too_far = False
    with tempfile.TemporaryDirectory() as folder:
        for task, format, dtype, rope_dtype in wanted:
            worst, ratio = row(Path(folder), task, format, dtype, rope_dtype)
            exact = dtype == rope_dtype == 'fp32'
            limit = MAX_PIXELS if task == 'pose' else LIMITS[format]
            too_far |= exact and not max(worst) <= limit
            values = ' | '.join(f'{value:.0e}' for value in worst)
            name = task if rope_dtype == 'fp32' else f'{task}, bf16 rotary tables'
            sys.stdout.write(
                f'| {name} | {format} | {dtype} | {values} | {ratio:.2f} |\n'
            )
            sys.stdout.flush()
    return int(too_far)


if __name__ == '__main__':
    sys.exit(main())
