"""Transforms. None of these needs a host; those that do: ``sapiens2_mm.datasets``."""

from .corruption import CoarseDropout, RandomBlur
from .dense_geometry import DenseRandomCrop, DenseRandomFlip, DenseRandomScale
from .dense_targets import (
    FilterByMask,
    FilterFlatAlbedo,
    PointmapTarget,
    RelativeDepthTarget,
)
from .down_up_sample import RandomDownUpSample
from .gaussian_blur import RandomGaussianBlur
from .gaussian_noise import RandomGaussianNoise
from .letterbox import DenseResize, Letterbox
from .load_dense_annotations import LoadDenseAnnotations
from .load_image import LoadImage
from .pack_dense_inputs import PackDenseInputs

__all__ = [
    'CoarseDropout',
    'DenseRandomCrop',
    'DenseRandomFlip',
    'DenseRandomScale',
    'DenseResize',
    'FilterByMask',
    'FilterFlatAlbedo',
    'Letterbox',
    'LoadDenseAnnotations',
    'LoadImage',
    'PackDenseInputs',
    'PointmapTarget',
    'RandomBlur',
    'RandomDownUpSample',
    'RandomGaussianBlur',
    'RandomGaussianNoise',
    'RelativeDepthTarget',
]
