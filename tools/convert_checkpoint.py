"""Rewrite a checkpoint with official, our own or transformers' names.

``python tools/convert_checkpoint.py SRC DST --to official``; SRC is any checkpoint that
a config can name, DST a .safetensors file, or a folder for transformers.
"""

import argparse

import torch

from sapiens2_mm.checkpoint.layouts.convert import convert_checkpoint
from sapiens2_mm.checkpoint.layouts.names import LAYOUTS, TASKS

DTYPES = {'fp32': torch.float32, 'bf16': torch.bfloat16, 'fp16': torch.float16}


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Convert a checkpoint')
    parser.add_argument('src', help='path, URL or hf:// address of the checkpoint')
    parser.add_argument(
        'dst',
        help='.safetensors file to write; for transformers, a folder gets '
        'model.safetensors, config.json and preprocessor_config.json',
    )
    parser.add_argument('--to', choices=LAYOUTS, required=True, help='names to write')
    parser.add_argument(
        '--dtype', choices=DTYPES, help='of the weights (default: keep)'
    )
    parser.add_argument(
        '--task', choices=TASKS, help='only needed if the keys do not tell the task'
    )
    parser.add_argument(
        '--image-size',
        type=int,
        nargs=2,
        metavar=('HEIGHT', 'WIDTH'),
        default=(1024, 768),
        help='that the model was trained with; for the folder of transformers',
    )
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    entries = convert_checkpoint(
        args.src,
        args.dst,
        args.to,
        DTYPES.get(args.dtype),
        args.task,
        tuple(args.image_size),
    )
    for name, value in entries.items():
        print(f'{name}: {value}')


if __name__ == '__main__':
    main()
