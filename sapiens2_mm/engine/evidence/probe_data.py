"""Images of the synthetic humans with the annotations of all five tasks, in memory."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from sapiens2_mm.datasets.dense.synthetic_humans_dense_dataset import (
    SyntheticHumansDenseDataset,
)
from sapiens2_mm.datasets.io.label_image import read_label_image
from sapiens2_mm.datasets.metainfo.humans308 import METAINFO
from sapiens2_mm.datasets.pose.coco_keypoints import (
    labeled_inside,
    read_coco_keypoints,
)

_PIPELINE = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(
        type='sapiens2_mm.LoadDenseAnnotations',
        fields=['normal', 'depth', 'albedo'],
        with_camera=True,
    ),
    dict(type='sapiens2_mm.PointmapTarget'),
    dict(type='sapiens2_mm.PackDenseInputs'),
]


@dataclass(frozen=True)
class ProbeData:
    """N images and what probes are trained and measured on.

    Args:
        images: (N, 3, H, W) uint8 BGR.
        labels: (N, H, W) uint8 classes.
        mask: (N, 1, H, W) bool, the person; the three maps count there.
        normal: (N, 3, H, W).
        albedo: (N, 3, H, W).
        points: (N, 3, H, W) in canonical space.
        scale: (N, 1) of the canonical camera; metric = canonical / scale.
        keypoints: (N, K, 2) x and y in pixels.
        visible: (N, K) float32, 1 for keypoints that are labeled inside the image.
        box: (N, 2) width and height of the person, pixels.
    """

    images: Tensor
    labels: Tensor
    mask: Tensor
    normal: Tensor
    albedo: Tensor
    points: Tensor
    scale: Tensor
    keypoints: Tensor
    visible: Tensor
    box: Tensor

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Tensor) -> 'ProbeData':
        return ProbeData(**{name: x[index] for name, x in vars(self).items()})

    def at_size(self, size: tuple[int, int]) -> 'ProbeData':
        """The same with maps of another (height, width), by the nearest pixel.

        Images, keypoints and boxes stay as they are.
        """
        resized = {}
        for name in ('labels', 'mask', 'normal', 'albedo', 'points'):
            x = getattr(self, name)
            maps = x[:, None] if x.ndim == 3 else x
            maps = F.interpolate(maps.float(), size=size, mode='nearest-exact')
            resized[name] = maps.reshape(*x.shape[:-2], *size).to(x.dtype)
        return ProbeData(**(vars(self) | resized))


def load_probe_data(data_root: str | Path, ann_file: str) -> ProbeData:
    """Read one split of the synthetic humans; one person per image."""
    root = Path(data_root)
    dataset = SyntheticHumansDenseDataset(str(root), ann_file, pipeline=_PIPELINE)
    content = read_coco_keypoints(str(root / ann_file), len(METAINFO['keypoint_info']))
    persons = {content.images[p.image_id]['file_name']: p for p in content.persons}
    rows = []
    for index in range(len(dataset)):
        info = dataset.get_data_info(index)
        packed = dataset[index]
        sample = packed['data_samples']
        image = packed['inputs']
        person = persons[str(Path(info['img_path']).relative_to(root))]
        visible = labeled_inside(person.keypoints, image.shape[2], image.shape[1])
        rows.append(
            dict(
                images=image,
                labels=torch.from_numpy(read_label_image(info['mask_path']).copy()),
                mask=sample.gt_mask,
                normal=sample.gt_normal,
                albedo=sample.gt_albedo,
                points=sample.gt_pointmap * sample.gt_scale,
                scale=sample.gt_scale,
                keypoints=torch.from_numpy(person.keypoints[:, :2]),
                visible=torch.from_numpy(visible.astype(np.float32)),
                box=torch.from_numpy(person.bbox[2:] - person.bbox[:2]),
            )
        )
    return ProbeData(
        **{key: torch.stack([row[key] for row in rows]) for key in rows[0]}
    )
