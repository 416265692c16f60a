"""Label the body parts in pictures.

``python tools/demo_seg.py CONFIG CHECKPOINT INPUT``; INPUT is a picture or a folder.
The exit code is 1 if a picture could not be read.
"""

import argparse
import sys

from sapiens2_mm.apis import init_model
from sapiens2_mm.apis.seg_folder import segment_to_folder


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='path of the config file')
    parser.add_argument('checkpoint', help='weights: a path or hf:// address')
    parser.add_argument('input', help='a picture, or a folder of pictures')
    parser.add_argument(
        '--out-dir', default='outputs', help='folder of the results (outputs)'
    )
    parser.add_argument('--device', default='cpu', help='such as cuda:0 (cpu)')
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    model = init_model(args.config, args.checkpoint, args.device)
    failures = segment_to_folder(model, args.input, args.out_dir)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
