"""Predict pictures with the models of one or several tasks.

    python tools/demo.py photos --task pose,seg,normal --boxes people.json
    python tools/demo.py photo.jpg --model sapiens2-1b_seg
    python tools/demo.py 'photos/*.jpg' --model CONFIG CHECKPOINT --whole-image

Each task has a folder of its name in the output folder. The exit code is 0 if every
picture has a result, 1 if some have none, 130 after Ctrl-C.
"""

import argparse
import sys

from sapiens2_mm.apis import Inferencer, predict_to_folder, share_backbones


def parse_args() -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        'input', help="a picture, a folder, or a quoted pattern '*.jpg'"
    )
    parser.add_argument(
        '--task', help='such as pose,seg,normal: published models of --size'
    )
    parser.add_argument('--size', default='1b', help='of the models of --task (1b)')
    parser.add_argument(
        '--model',
        nargs='+',
        action='append',
        default=[],
        metavar=('NAME_OR_CONFIG', 'CHECKPOINT'),
        help='name of a published model, or config and checkpoint; may be repeated',
    )
    parser.add_argument(
        '--out-dir', default='outputs', help='folder of the results (outputs)'
    )
    parser.add_argument(
        '--save',
        default='json,png,npz',
        help='some of json,png,npz,ply,coco (json,png,npz)',
    )
    parser.add_argument(
        '--boxes', help='pose: COCO-style JSON with the boxes of the people (xywh)'
    )
    parser.add_argument(
        '--whole-image', action='store_true', help='pose: one person per picture'
    )
    parser.add_argument('--batch-size', type=int, default=1, help='(1)')
    parser.add_argument('--device', default='cpu', help='such as cuda:0 (cpu)')
    parser.add_argument(
        '--dtype', choices=['fp32', 'bf16', 'fp16'], default='fp32', help='(fp32)'
    )
    parser.add_argument(
        '--compile', action='store_true', help='slow start, then faster pictures'
    )
    args = parser.parse_args()
    if not args.task and not args.model:
        parser.error('give --task or --model')
    if any(len(model) > 2 for model in args.model):
        parser.error('--model takes a name, or CONFIG CHECKPOINT; put INPUT first')
    return parser, args


def load(args: argparse.Namespace) -> dict[str, Inferencer]:
    """Name of the results' folder -> inferencer."""
    tasks = args.task.split(',') if args.task else []
    inferencers: dict[str, Inferencer] = {}
    for model in [*([f'sapiens2-{args.size}_{task}'] for task in tasks), *args.model]:
        inferencer = Inferencer(
            *model, device=args.device, dtype=args.dtype, compile=args.compile
        )
        name, number = inferencer.task.name, 1
        while name in inferencers:
            number += 1
            name = f'{inferencer.task.name}_{number}'
        inferencers[name] = inferencer
    share_backbones(list(inferencers.values()))
    return inferencers


def main() -> int:
    parser, args = parse_args()
    try:
        summary = predict_to_folder(
            load(args),
            args.input,
            args.out_dir,
            save=args.save.split(','),
            boxes=args.boxes,
            whole_image=args.whole_image,
            batch_size=args.batch_size,
        )
    except (FileNotFoundError, ImportError, ValueError) as err:
        parser.error(str(err))
    except KeyboardInterrupt:
        return 130
    return 1 if summary.failures else 0


if __name__ == '__main__':
    sys.exit(main())
