"""Write a model as an ONNX file, or as a program of torch.export.

    python tools/export.py CONFIG CHECKPOINT --with-postprocess --check
    python tools/export.py sapiens2-0.4b_normal --format torch --dtype bf16
    python tools/export.py configs/backbone/CONFIG.py CHECKPOINT --dynamic batch,size

What the file takes and returns stands in its metadata, which is printed.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from mmengine.config import DictAction

from sapiens2_mm.apis import init_model
from sapiens2_mm.apis.export import (
    FORMATS,
    check_parity,
    export_model,
    graph_of,
    parity_table,
)
from sapiens2_mm.checkpoint import CheckpointError

DTYPES = dict(fp32=torch.float32, fp16=torch.float16, bf16=torch.bfloat16)
SUFFIXES = dict(onnx='.onnx', torch='.pt2')


def parse_args() -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('config', help='config, or the name of a published model')
    parser.add_argument(
        'checkpoint', nargs='?', help='weights; random ones without, said in the log'
    )
    parser.add_argument(
        '--format', choices=list(FORMATS), default='onnx', help='(onnx)'
    )
    parser.add_argument(
        '--out', help='file to write (name of the config with .onnx or .pt2, here)'
    )
    parser.add_argument(
        '--dynamic',
        default='batch',
        help='what may change from call to call: batch, size, both by comma, or none '
        '(batch)',
    )
    parser.add_argument(
        '--size',
        type=int,
        nargs=2,
        metavar=('HEIGHT', 'WIDTH'),
        help="of the input (the backbone's img_size)",
    )
    parser.add_argument('--dtype', choices=list(DTYPES), default='fp32', help='(fp32)')
    parser.add_argument(
        '--with-postprocess',
        action='store_true',
        help='take uint8 pictures (B, H, W, 3) and return class ids, keypoints, unit '
        'vectors, meters; otherwise normalized (B, 3, H, W) and raw outputs',
    )
    parser.add_argument(
        '--channel-order',
        choices=['bgr', 'rgb'],
        default='bgr',
        help='of pictures (bgr)',
    )
    parser.add_argument(
        '--device', default='cpu', help='to trace on, such as cuda (cpu)'
    )
    parser.add_argument(
        '--check',
        action='store_true',
        help='print how far the file is from the eager model, and the time of both',
    )
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=DictAction,
        metavar='KEY=VALUE',
        help='settings of the config, such as model.test_cfg.flip_test=False',
    )
    return parser, parser.parse_args()


def main() -> int:
    parser, args = parse_args()
    out = args.out or Path(args.config).stem + SUFFIXES[args.format]
    if Path(out).suffix != SUFFIXES[args.format]:
        parser.error(f'--out of --format {args.format} ends in {SUFFIXES[args.format]}')
    dynamic = () if args.dynamic == 'none' else tuple(args.dynamic.split(','))
    try:
        model = init_model(
            args.config,
            args.checkpoint,
            args.device,
            args.cfg_options,
            dtype=DTYPES[args.dtype],
        )
        meta = export_model(
            model,
            out,
            args.format,
            dynamic=dynamic,
            size=args.size,
            postprocess=args.with_postprocess,
            channel_order=args.channel_order,
        )
    except (CheckpointError, ImportError, OSError, ValueError) as err:
        parser.error(str(err))
    sys.stdout.write(f'{json.dumps(meta, indent=1)}\n{out} is written\n')
    if args.check:
        graph = graph_of(model, args.with_postprocess, args.channel_order)
        size = (meta['input']['height'], meta['input']['width'])
        batches = (1, 2, 5) if 'batch' in dynamic else (1,)
        rows = check_parity(out, graph, [(batch, *size) for batch in batches], 3)
        sys.stdout.write(parity_table(rows))
    return 0


if __name__ == '__main__':
    sys.exit(main())
