"""Peak memory of each task and of pretraining at 4096x3072, by the shipped configs.

Width and depth of the networks are tiny and windows get 128 MiB; everything else is
that of the config: sizes, channels of the result, losses, recomputation. Each step runs
in a process of its own; printed is the memory on top of model, images and targets.
Needs all hosts::

    python tools/benchmark/tasks_4k.py                      # a quarter of an hour
    python tools/benchmark/tasks_4k.py --tasks seg pose --steps predict
"""

import argparse
import multiprocessing
import resource
import sys
import time
import warnings
from typing import Any

import sapiens2_mm.registry  # noqa: F401  prepares the import of the hosts

# isort: split
import numpy as np
import torch
from mmengine.config import Config, ConfigDict
from mmengine.logging import MMLogger
from mmengine.structures import InstanceData, PixelData
from torch.nn.functional import normalize

from sapiens2_mm.apis import find_model
from sapiens2_mm.registry import MODELS
from sapiens2_mm.structures import DenseDataSample

SIZE = (4096, 3072)
TINY = dict(embed_dims=96, num_layers=2, num_heads=3, feedforward_channels=384)
NARROWER = 32  # channels of heads are divided by this
TASKS = ('seg', 'pose', 'normal', 'albedo', 'matting', 'pointmap')
PRETRAIN = dict(
    pretrain='sapiens2-1b-4k_mae-contrast_128xb16-500k_images-4096x3072',
    pretrain_2k='sapiens2-1b-4k_mae-2k_128xb16-20k_images-4096x3072',
)
# What one picture's whole float32 planes of the result would take, MiB.
PLANES = dict(seg=29 * 12, pose=308 * 3)


def tiny_config(task: str, size: tuple[int, int] = SIZE) -> Config:
    """The config of a task, with a tiny backbone and head, for images of a size."""
    cfg = Config.fromfile(
        find_model(PRETRAIN.get(task, f'sapiens2-1b-4k_{task}')).config
    )
    model = cfg.model
    model.backbone.update(arch=ConfigDict(TINY), img_size=size, window_bytes=2**27)
    if task in PRETRAIN:
        model.neck.update(embed_dims=64, num_layers=1, num_heads=2)
        if model.head:
            model.head.update(hidden_dims=64, bottleneck_dims=32, num_prototypes=256)
        return cfg
    head = model.head if task == 'pose' else model.decode_head
    head.in_channels = TINY['embed_dims']
    for key, channels in head.items():
        if key.endswith('_channels') and isinstance(channels, tuple | list):
            head[key] = [max(4, number // NARROWER) for number in channels]
    if task == 'pointmap':
        head.feature_size = (size[0] // 64, size[1] // 64)
    if task == 'pose':
        head.decoder.update(
            input_size=size[::-1], heatmap_size=(size[1] // 4, size[0] // 4)
        )
    return cfg


def batch(task: str, cfg: Config) -> dict[str, Any]:
    """One noise image with targets, or its views, as the loader gives them."""
    size = cfg.model.backbone.img_size
    generator = torch.Generator().manual_seed(0)

    def image(size: tuple[int, int]) -> torch.Tensor:
        return torch.randint(256, (3, *size), dtype=torch.uint8, generator=generator)

    if task in PRETRAIN:
        factor = SIZE[0] // size[0]
        views = [
            image((view.size[0] // factor, view.size[1] // factor))[None]
            for view in cfg.train_pipeline[0].views
            for _ in range(view.num_views)
        ]
        return dict(inputs=views, data_samples=None)
    sample = dict(seg=seg_sample, pose=pose_sample).get(task, dense_sample)(size)
    return dict(inputs=[image(size)], data_samples=[sample])


def seg_sample(size: tuple[int, int]) -> Any:
    """Labels of half the sides."""
    from mmseg.structures import SegDataSample

    sample = SegDataSample(
        metainfo=dict(ori_shape=size, img_shape=size, pad_shape=size)
    )
    half = (size[0] // 2, size[1] // 2)
    labels = torch.arange(half[0])[:, None].expand(half) // 64 % 29
    sample.gt_sem_seg = PixelData(data=labels[None].to(torch.uint8))
    return sample


def pose_sample(size: tuple[int, int]) -> Any:
    """One person with all keypoints."""
    from mmpose.structures import PoseDataSample

    points = np.random.default_rng(0).uniform((0, 0), size[::-1], (1, 308, 2))
    center = np.float32(size[::-1]) / 2
    meta = dict(input_size=size[::-1], input_center=center, input_scale=2 * center)
    sample = PoseDataSample(metainfo=dict(meta, flip_indices=list(range(308))))
    sample.gt_instances = InstanceData(
        transformed_keypoints=np.float32(points),
        keypoints_visible=np.ones((1, 308), np.float32),
        bboxes=np.float32([[0, 0, *size[::-1]]]),
        bbox_scores=np.ones(1, np.float32),
    )
    return sample


def dense_sample(size: tuple[int, int]) -> DenseDataSample:
    """All fields that any of the heads reads, of half the sides."""
    generator = torch.Generator().manual_seed(0)
    half = (size[0] // 2, size[1] // 2)
    maps = torch.rand(3, *half, generator=generator)
    known = torch.ones(1, *half, dtype=torch.bool)
    sample = DenseDataSample(metainfo=dict(ori_shape=size, img_shape=size))
    for name, values in dict(
        gt_normal=normalize(maps - 0.5, dim=0),
        gt_albedo=maps,
        gt_foreground=maps,
        gt_alpha=maps[:1],
        gt_pointmap=maps + 1,
        gt_mask=known,
        gt_foreground_mask=known,
        gt_scale=torch.ones(1),
        intrinsics=torch.tensor([[4e3, 0, 1535.5], [0, 4e3, 2047.5], [0, 0, 1]]),
    ).items():
        sample.set_field(values, name)
    return sample


def measure(
    task: str, step: str, flip_test: bool, size: tuple[int, int] = SIZE
) -> tuple[float, float]:
    """(MiB on top, processor seconds) of one step in this process."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter('ignore')
    MMLogger.get_current_instance().setLevel('ERROR')
    cfg = tiny_config(task, size)
    if task == 'pose':
        cfg.model.test_cfg.flip_test = flip_test
    model = MODELS.build(cfg.model)
    model.init_weights()
    model.train(step == 'train')
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    data = batch(task, cfg)
    data = model.data_preprocessor(data, step == 'train')
    before, start = peak(), time.process_time()
    if step == 'train':
        losses = model(**data, mode='loss')
        sum(v for name, v in losses.items() if 'loss' in name).backward()
        optimizer.step()
    else:
        with torch.no_grad():
            model(**data, mode='predict')
    return (peak() - before) / 2**20, time.process_time() - start


def peak() -> int:
    """Largest resident memory of this process so far, bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks = (*TASKS, *PRETRAIN)
    parser.add_argument('--tasks', nargs='+', choices=tasks, default=tasks)
    parser.add_argument('--steps', nargs='+', default=['predict', 'train'])
    parser.add_argument('--no-flip', action='store_true', help='of pose predictions')
    args = parser.parse_args()
    context = multiprocessing.get_context('spawn')
    for task in args.tasks:
        for step in args.steps:
            if task in PRETRAIN and step == 'predict':
                continue
            with context.Pool(1) as pool:
                memory, seconds = pool.apply(measure, (task, step, not args.no_flip))
            planes = f'  (planes: {PLANES[task]} MiB)' if task in PLANES else ''
            sys.stdout.write(
                f'{task:11s} {step:7s} peak {memory:6.0f} MiB  {seconds:6.1f} s'
                f'{planes}\n'
            )
            sys.stdout.flush()


if __name__ == '__main__':
    main()
