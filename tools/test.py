"""Test a checkpoint with the data and metrics of a config.

Any config of any task: ``python tools/test.py CONFIG CHECKPOINT``.
"""

import argparse
import os

from sapiens2_mm.cfg_options import CfgOptions
from sapiens2_mm.engine import launch
from sapiens2_mm.engine.test_data import use_data


def pickle_path(value: str) -> str:
    if not value.endswith(('.pkl', '.pickle')):
        raise argparse.ArgumentTypeError(f'must end with .pkl or .pickle, got {value}')
    return value


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Test a model')
    parser.add_argument('config', help='path of the config file')
    parser.add_argument('checkpoint', help='path or URL of the weights')
    parser.add_argument(
        '--data',
        metavar='CONFIG',
        help='test on the data of this config, with its metric, such as '
        'configs/_base_/datasets/public/cihp.py',
    )
    parser.add_argument('--work-dir', help='folder for logs')
    parser.add_argument(
        '--out', type=pickle_path, help='write all predictions to this .pkl file'
    )
    parser.add_argument('--show-dir', help='write a picture of every prediction here')
    parser.add_argument(
        '--tta', action='store_true', help='test-time augmentation of the config'
    )
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=CfgOptions,
        metavar='KEY=VALUE',
        help='override settings of the config',
    )
    parser.add_argument(
        '--launcher', choices=['none', 'pytorch', 'slurm', 'mpi'], default='none'
    )
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0)
    args = parser.parse_args()
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    return args


def main() -> None:
    args = parse_args()
    cfg = launch.load_config(args.config, None, args.work_dir, args.launcher)
    if args.data:
        use_data(cfg, launch.load_config(args.data))
    cfg.merge_from_dict(args.cfg_options or {})
    cfg.load_from = args.checkpoint
    if args.tta:
        launch.use_tta(cfg)
    if args.show_dir:
        launch.draw_predictions(cfg, args.show_dir)
    if args.out:
        launch.dump_predictions(cfg, args.out)
    launch.build_runner(cfg).test()


if __name__ == '__main__':
    main()
