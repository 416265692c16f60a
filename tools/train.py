"""Train the model of a config.

Any config of any task: ``python tools/train.py CONFIG``.
"""

import argparse
import os

from sapiens2_mm.cfg_options import CfgOptions
from sapiens2_mm.engine import launch


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Train a model')
    parser.add_argument('config', help='path of the config file')
    parser.add_argument('--work-dir', help='folder for logs and checkpoints')
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='continue from CHECKPOINT, or from the latest one of the work folder',
    )
    parser.add_argument(
        '--amp', action='store_true', help='bfloat16 autocast, on the CPU too'
    )
    parser.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help='scale the learning rate by real batch / base_batch_size of the config',
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
    cfg = launch.load_config(
        args.config, args.cfg_options, args.work_dir, args.launcher
    )
    if args.resume:
        launch.resume(cfg, args.resume)
    if args.amp:
        launch.use_bf16_autocast(cfg)
    if args.auto_scale_lr:
        launch.scale_lr_to_batch(cfg)
    launch.train(launch.build_runner(cfg))


if __name__ == '__main__':
    main()
