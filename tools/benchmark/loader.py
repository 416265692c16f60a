"""Images/s of one loader worker, for the training pipeline of every task.

``python tools/benchmark/loader.py DATA`` compares the shipped pipelines with those of
mmpose, mmseg and mmpretrain on the same files, and prints what each of our steps takes.
DATA is a folder of synthetic humans. Both sides take turns in one process; times are
those of one processor, which other processes do not lengthen.
"""

import argparse
import random
import time
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import sapiens2_mm.registry  # noqa: F401  prepares the import of the hosts

# isort: split
import cv2
import numpy as np
import torch
import torch.multiprocessing
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.logging import MMLogger
from mmengine.registry import DefaultScope

from sapiens2_mm.registry import DATASETS

CONFIGS = Path(__file__).parents[2] / 'configs'
TASKS = ('pose', 'seg', 'normal', 'pointmap', 'albedo', 'matting', 'pretrain')
HEIGHT, WIDTH = 1024, 768

# The same augmentations by the hosts' own classes; what they lack is left out.
_POSE = [
    dict(type='mmpose.LoadImage'),
    dict(type='mmpose.GetBBoxCenterScale', padding=1.25),
    dict(type='mmpose.RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='mmpose.RandomHalfBody', prob=0.3),
    dict(
        type='mmpose.RandomBBoxTransform',
        shift_factor=0.16,
        shift_prob=0.3,
        scale_factor=(0.5, 1.5),
        scale_prob=1.0,
        rotate_factor=80.0,
        rotate_prob=0.6,
    ),
    dict(type='mmpose.TopdownAffine', input_size=(WIDTH, HEIGHT), use_udp=True),
    dict(
        type='RandomApply',
        transforms=[dict(type='mmpose.PhotometricDistortion')],
        prob=0.8,
    ),
    dict(
        type='mmpose.GenerateTarget',
        encoder=dict(
            type='mmpose.UDPHeatmap',
            input_size=(WIDTH, HEIGHT),
            heatmap_size=(WIDTH // 4, HEIGHT // 4),
            sigma=6,
        ),
    ),
    dict(type='mmpose.PackPoseInputs'),
]
_SEG = [
    dict(type='LoadImageFromFile'),
    dict(type='mmseg.LoadAnnotations'),
    dict(
        type='RandomResize',
        scale=(WIDTH, HEIGHT),
        ratio_range=(0.4, 2.0),
        keep_ratio=True,
        resize_type='mmseg.Resize',
    ),
    dict(
        type='RandomApply',
        prob=0.3,
        transforms=[
            dict(type='mmseg.RandomCrop', crop_size=(HEIGHT, WIDTH), cat_max_ratio=0.75)
        ],
    ),
    dict(type='mmseg.RandomRotate', prob=0.5, degree=60, pad_val=0, seg_pad_val=0),
    dict(type='mmseg.RandomFlip', prob=0.5),
    dict(type='mmseg.PhotoMetricDistortion'),
    dict(type='mmseg.Resize', scale=(WIDTH, HEIGHT)),
    dict(type='mmseg.PackSegInputs'),
]
# What mmseg does with a map of depth; normals and albedo are read and resized alike.
_MAPS = [
    dict(type='LoadImageFromFile'),
    dict(type='mmseg.LoadDepthAnnotation', depth_rescale_factor=2e-4),
    dict(
        type='RandomApply',
        prob=0.3,
        transforms=[
            dict(
                type='RandomResize',
                scale=(WIDTH, HEIGHT),
                ratio_range=(0.5, 2.0),
                keep_ratio=True,
                resize_type='mmseg.Resize',
            )
        ],
    ),
    dict(type='mmseg.RandomFlip', prob=0.3),
    dict(type='mmseg.PhotoMetricDistortion'),
    dict(type='mmseg.Resize', scale=(WIDTH, HEIGHT)),
    # mmseg's own packs no map of three channels
    dict(type='mmpretrain.PackInputs', algorithm_keys=('gt_depth_map',)),
]


def _view(size: tuple[int, int], area: tuple[float, float]) -> list[dict]:
    return [
        dict(
            type='mmpretrain.RandomResizedCrop',
            scale=size,
            crop_ratio_range=area,
            backend='pillow',
            interpolation='bicubic',
        ),
        dict(type='mmpretrain.RandomFlip', prob=0.5),
    ]


_COLORS = [
    dict(
        type='RandomApply',
        prob=0.8,
        transforms=[
            dict(
                type='mmpretrain.ColorJitter',
                brightness=0.4,
                contrast=0.4,
                saturation=0.2,
            )
        ],
    ),
    dict(type='RandomGrayscale', prob=0.2, keep_channels=True),
    dict(
        type='mmpretrain.GaussianBlur',
        magnitude_range=(0.1, 2.0),
        magnitude_std='inf',
        prob=0.5,
    ),
    dict(type='mmpretrain.Solarize', thr=128, prob=0.2),
]
_PRETRAIN = [
    dict(type='LoadImageFromFile'),
    dict(
        type='mmpretrain.MultiView',
        num_views=[2, 4],
        transforms=[
            _view((1024, 768), (0.5, 1.0)),
            [*_view((512, 384), (0.2, 0.7)), *_COLORS],
        ],
    ),
    dict(type='mmpretrain.PackInputs'),
]
PEERS = dict(
    pose=('mmpose', _POSE), seg=('mmseg', _SEG), pretrain=('mmpretrain', _PRETRAIN)
)
# Our steps without a counterpart in the host's pipeline.
EXTRA = {
    *('RandomBlur', 'CoarseDropout'),
    *('RandomBackground', 'RandomGaussianBlur', 'RandomGaussianNoise'),
    *('RandomDownUpSample', 'RandomSolarize', 'RandomJpeg', 'RandomAlphaCrop'),
    *('RandomMatteRotate', 'DenseRandomCrop', 'PointmapTarget'),
    *('FilterForeground', 'FilterByMask', 'FilterFlatAlbedo', 'DrawTokenMasks'),
}
_FOLDERS = dict(pointmap='depth', matting='seg')  # of the maps, if not the task's name


class MapFiles(BaseDataset):
    """Images and their maps as mmseg's depth datasets give them."""

    def __init__(self, data_root: str, task: str, **kwargs: Any) -> None:
        self.task = task
        super().__init__(data_root=data_root, **kwargs)

    def load_data_list(self) -> list[dict]:
        root = Path(self.data_root)
        maps = sorted((root / _FOLDERS.get(self.task, self.task)).glob('*.png'))
        return [
            dict(
                img_path=f'{root}/rgb/{path.stem}.jpg',
                depth_map_path=str(path),
                seg_fields=[],
            )
            for path in maps
        ]


def peer_dataset(task: str, data_root: str) -> tuple[str, BaseDataset]:
    """A host, and the files of a task with the host's training pipeline."""
    host, pipeline = PEERS.get(task, ('mmseg', _MAPS))
    with DefaultScope.overwrite_default_scope(host):
        if task in ('pose', 'seg'):
            cfg = {**dataset_cfg(task, data_root), 'pipeline': pipeline}
            return host, DATASETS.build(cfg)
        if task == 'pretrain':
            cfg = dict(type='mmpretrain.CustomDataset', data_root=f'{data_root}/rgb')
            cfg |= dict(pipeline=pipeline, with_label=False)
            return host, DATASETS.build(cfg)
        return host, MapFiles(data_root, task, pipeline=pipeline)


def our_dataset(task: str, data_root: str) -> BaseDataset:
    """The files of a task with the shipped training pipeline."""
    scope = dict(pose='mmpose', seg='mmseg').get(task, 'sapiens2_mm')
    with DefaultScope.overwrite_default_scope(scope):
        return DATASETS.build(dataset_cfg(task, data_root))


def task_config(task: str) -> Config:
    """The shipped 0.4b config of a task."""
    (path,) = (
        path
        for path in (CONFIGS / task).glob('sapiens2-0.4b_*.py')
        if 'continue' not in path.name
    )
    return Config.fromfile(path)


def dataset_cfg(task: str, data_root: str) -> dict[str, Any]:
    """Training data of the shipped 0.4b config of a task."""
    dataset = task_config(task).train_dataloader.dataset
    dataset.data_root = f'{data_root}/rgb' if task == 'pretrain' else data_root
    return dataset


class Step:
    """A step of a pipeline that notes its processor time."""

    def __init__(self, step: Callable) -> None:
        self.step, self.seconds = step, 0.0
        inner = getattr(step, 'transforms', None)  # of RandomApply
        inner = getattr(inner, 'transforms', ())
        self.name = '+'.join([type(each).__name__ for each in inner or [step]])

    def __call__(self, results: dict) -> dict | None:
        start = time.process_time()
        try:
            return self.step(results)
        finally:
            self.seconds += time.process_time() - start

    def __getattr__(self, name: str) -> Any:
        return getattr(self.step, name)


class Worker:
    """A dataset that is read as a loader worker reads it."""

    def __init__(self, dataset: BaseDataset) -> None:
        self.dataset = dataset
        self.steps = [Step(step) for step in self.dataset.pipeline.transforms]
        self.seconds, self.sharing, self.num_images = 0.0, 0.0, 0

    def read(self, number: int) -> None:
        """One sample; the first one only warms up."""
        if number == 0:
            self.dataset[0]
            self.dataset.pipeline.transforms = self.steps
        random.seed(number)
        np.random.seed(number)
        torch.manual_seed(number)
        start = time.process_time()
        sample = self.dataset[number % len(self.dataset)]
        middle = time.process_time()
        ForkingPickler.dumps(sample)  # into the memory that processes share
        self.sharing += time.process_time() - middle
        self.seconds += time.process_time() - start
        self.num_images += 1

    def speed(self, extra: bool = True) -> float:
        """Images/s, without the steps of ``EXTRA`` if asked."""
        left_out = [step.seconds for step in self.steps if step.name in EXTRA]
        return self.num_images / (self.seconds - (0 if extra else sum(left_out)))

    def print_steps(self) -> None:
        rest = self.seconds - self.sharing - sum(step.seconds for step in self.steps)
        rows = [(step.name, step.seconds) for step in self.steps]
        rows += [('sharing with the training process', self.sharing), ('rest', rest)]
        for name, seconds in rows:
            print(f'    {1000 * seconds / self.num_images:7.2f} ms  {name}')


def compare(task: str, data_root: str, num_images: int, steps: bool) -> float:
    """Print the images/s of both sides; returns the ratio."""
    ours = Worker(our_dataset(task, data_root))
    host, dataset = peer_dataset(task, data_root)
    theirs = Worker(dataset)
    for number in range(num_images):
        for worker in (ours, theirs):
            worker.read(number)
    ratio = ours.speed() / theirs.speed()
    print(
        f'{task:9} ours {ours.speed():6.2f} images/s, {host:10} '
        f'{theirs.speed():6.2f}, {ratio:5.2f} times as fast, '
        f'{ours.speed(extra=False) / theirs.speed():5.2f} in the steps of both'
    )
    if steps:
        print('  ours:')
        ours.print_steps()
        print(f'  {host}:')
        theirs.print_steps()
    return ratio


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('data', help='folder of synthetic humans')
    parser.add_argument('--tasks', nargs='+', choices=TASKS, default=TASKS)
    parser.add_argument('--num-images', type=int, default=32)
    parser.add_argument('--steps', action='store_true', help='print all steps')
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    cv2.setNumThreads(0)
    MMLogger.get_instance('loader', log_level='WARNING')
    for task in args.tasks:
        compare(task, args.data, args.num_images, args.steps)


if __name__ == '__main__':
    main()
