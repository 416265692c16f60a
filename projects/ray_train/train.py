"""Train any config by Ray: ``python projects/ray_train/train.py CONFIG WORKERS``.

Ray starts the processes and joins them. A run that it starts again goes on from the
last checkpoint of its work folder, which all machines must share.
"""

import os
import sys

import torch
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

from sapiens2_mm.engine import launch


def work(settings: dict) -> None:
    os.chdir(settings['folder'])
    cfg = launch.load_config(settings['config'], launcher='pytorch')
    launch.resume(cfg, 'auto')
    launch.train(launch.build_runner(cfg))


if __name__ == '__main__':
    workers = ScalingConfig(
        num_workers=int(sys.argv[2]), use_gpu=torch.cuda.is_available()
    )
    settings = dict(config=sys.argv[1], folder=os.getcwd())
    again = RunConfig(failure_config=FailureConfig(max_failures=3))
    TorchTrainer(
        work, train_loop_config=settings, scaling_config=workers, run_config=again
    ).fit()
