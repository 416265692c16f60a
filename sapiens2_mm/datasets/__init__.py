"""Datasets and transforms. Host classes load on first use."""

from .._lazy import host_getattr
from .dense.dense_folder_dataset import DenseFolderDataset  # noqa: F401
from .dense.matting_list_dataset import MattingListDataset  # noqa: F401
from .dense.synthetic_humans_dense_dataset import (  # noqa: F401
    SyntheticHumansDenseDataset,
)
from .samplers import DrawSampler  # noqa: F401
from .transforms import *  # noqa: F403

# class -> (module, host)
HOST_CLASSES: dict[str, tuple[str, str]] = {
    'Humans29Dataset': ('sapiens2_mm.datasets.seg.humans29_dataset', 'mmseg'),
    'SegPhotometricDistortion': (
        'sapiens2_mm.datasets.transforms.seg_augment',
        'mmseg',
    ),
    'SegRandomCrop': ('sapiens2_mm.datasets.transforms.seg_augment', 'mmseg'),
    'SegDataset': ('sapiens2_mm.datasets.seg.seg_dataset', 'mmseg'),
    'Humans308Dataset': ('sapiens2_mm.datasets.pose.humans308_dataset', 'mmpose'),
    'Sapiens2CocoDataset': ('sapiens2_mm.datasets.pose.coco_dataset', 'mmpose'),
    'Sapiens2CocoWholeBodyDataset': (
        'sapiens2_mm.datasets.pose.coco_dataset',
        'mmpose',
    ),
    'Sapiens2KeypointListDataset': (
        'sapiens2_mm.datasets.pose.keypoint_list_dataset',
        'mmpose',
    ),
    'PosePhotometricDistortion': ('sapiens2_mm.datasets.transforms.topdown', 'mmpose'),
    'Sapiens2RandomHalfBody': ('sapiens2_mm.datasets.transforms.topdown', 'mmpose'),
    'Sapiens2TopdownAffine': (
        'sapiens2_mm.datasets.transforms.topdown',
        'mmpose',
    ),
    'TarShardDataset': (
        'sapiens2_mm.datasets.pretrain.tar_shard_dataset',
        'webdataset',
    ),
    'UnlabeledImageDataset': (
        'sapiens2_mm.datasets.pretrain.unlabeled_image_dataset',
        'mmpretrain',
    ),
}
__getattr__ = host_getattr(__name__, HOST_CLASSES)
