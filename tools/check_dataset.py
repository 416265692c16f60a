"""Read every sample of a config's data and report what is wrong with it.

Any config of any task: ``python tools/check_dataset.py CONFIG``, and those of public
data. The exit code is 1 if there are errors, 2 if the data are not there, else 0.
"""

import argparse
import sys

import mmengine

from sapiens2_mm.cfg_options import CfgOptions
from sapiens2_mm.datasets.checking.checker import check_config
from sapiens2_mm.engine import launch


def parse_args() -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(description='Check the data of a config')
    parser.add_argument('config', help='path of the config file')
    parser.add_argument(
        '--split',
        choices=['train', 'val', 'test'],
        help='(train, or test of a config that only tests)',
    )
    parser.add_argument('--workers', type=int, default=2, help='reading processes')
    parser.add_argument('--out', help='write the whole report to this .json file')
    parser.add_argument(
        '--max-listed', type=int, default=20, help='faults of each kind to print'
    )
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=CfgOptions,
        metavar='KEY=VALUE',
        help='override settings of the config',
    )
    return parser, parser.parse_args()


def main() -> None:
    parser, args = parse_args()
    try:
        cfg = launch.load_config(args.config, args.cfg_options)
        split = args.split or ('train' if 'train_dataloader' in cfg else 'test')
        report = check_config(cfg, split, args.workers, progress=True)
    except FileNotFoundError as err:
        parser.exit(2, f'{parser.prog}: error: {err}\n')
    sys.stdout.write(report.to_text(args.max_listed) + '\n')
    if args.out:
        mmengine.dump(report.to_dict(), args.out, indent=1)
    sys.exit(int(report.has_errors))


if __name__ == '__main__':
    main()
