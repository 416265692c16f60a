"""Datasets and transforms. Host classes load on first use."""

from .._lazy import host_getattr
from .dense_folder_dataset import DenseFolderDataset  # noqa: F401
from .synthetic_humans_dense_dataset import (  # noqa: F401
    SyntheticHumansDenseDataset,
)
from .transforms import *  # noqa: F403

# class -> (module, host)
HOST_CLASSES: dict[str, tuple[str, str]] = {
    'Humans308Dataset': ('sapiens2_mm.datasets.humans308_dataset', 'mmpose'),
    'Sapiens2KeypointListDataset': (
        'sapiens2_mm.datasets.keypoint_list_dataset',
        'mmpose',
    ),
    'Sapiens2RandomHalfBody': ('sapiens2_mm.datasets.transforms.half_body', 'mmpose'),
    'Sapiens2TopdownAffine': (
        'sapiens2_mm.datasets.transforms.topdown_affine',
        'mmpose',
    ),
}
__getattr__ = host_getattr(__name__, HOST_CLASSES)
