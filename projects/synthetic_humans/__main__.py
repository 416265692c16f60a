"""Command line: ``python -m projects.synthetic_humans OUT [options]``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .generate import Settings, SettingsError, generate


def parse_size(text: str) -> tuple[int, int]:
    """``HxW`` to (height, width)."""
    try:
        height, width = (int(part) for part in text.lower().split('x'))
    except ValueError as err:
        raise argparse.ArgumentTypeError(
            f'expected HEIGHTxWIDTH such as 1024x768, got {text!r}'
        ) from err
    return height, width


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the arguments and render."""
    parser = argparse.ArgumentParser(
        prog='python -m projects.synthetic_humans',
        description='Render people with ground truth for pose, segmentation, normal, '
        'pointmap and albedo. Intact samples of an earlier run are kept.',
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument('out', help='folder of the data set')
    parser.add_argument('--num-train', type=int, default=64, help='train samples')
    parser.add_argument('--num-val', type=int, default=16, help='val samples')
    parser.add_argument(
        '--size', type=parse_size, default='1024x768', help='image HEIGHTxWIDTH'
    )
    parser.add_argument('--seed', type=int, default=0, help='seed of the set')
    parser.add_argument(
        '--workers', type=int, default=1, help='processes, about 1 GB each'
    )
    args = parser.parse_args(argv)
    try:
        settings = Settings(args.num_train, args.num_val, *args.size, args.seed)
        generate(args.out, settings, args.workers)
    except SettingsError as err:
        parser.error(str(err))


if __name__ == '__main__':
    main()
