"""Transforms. None of these needs a host; those that do: ``sapiens2_mm.datasets``."""

from .area_cubic_resize import AreaCubicResize
from .corruption import CoarseDropout, RandomBlur
from .dense_geometry import DenseRandomCrop, DenseRandomFlip, DenseRandomScale
from .dense_targets import (
    FilterByMask,
    FilterFlatAlbedo,
    PointmapTarget,
    RelativeDepthTarget,
)
from .down_up_sample import RandomDownUpSample
from .filter_foreground import FilterForeground
from .gaussian_blur import RandomGaussianBlur
from .gaussian_noise import RandomGaussianNoise
from .letterbox import DenseResize, Letterbox
from .load_dense_annotations import LoadDenseAnnotations
from .load_image import LoadImage
from .load_matte import LoadMatte
from .load_seg_annotations import LoadSegAnnotations
from .matte_augment import RandomAlphaCrop, RandomJpeg, RandomMatteRotate
from .matte_background import RandomMatteBackground
from .multi_view import MultiViewCrop
from .pack_dense_inputs import PackDenseInputs
from .photometric_distortion import PhotometricDistortion
from .random_background import RandomBackground
from .seg_flip import SegFlip
from .solarize import RandomSolarize

__all__ = [
    'AreaCubicResize',
    'CoarseDropout',
    'DenseRandomCrop',
    'DenseRandomFlip',
    'DenseRandomScale',
    'DenseResize',
    'FilterByMask',
    'FilterFlatAlbedo',
    'FilterForeground',
    'Letterbox',
    'LoadDenseAnnotations',
    'LoadImage',
    'LoadMatte',
    'LoadSegAnnotations',
    'MultiViewCrop',
    'PackDenseInputs',
    'PhotometricDistortion',
    'PointmapTarget',
    'RandomAlphaCrop',
    'RandomBackground',
    'RandomBlur',
    'RandomDownUpSample',
    'RandomGaussianBlur',
    'RandomGaussianNoise',
    'RandomJpeg',
    'RandomMatteBackground',
    'RandomMatteRotate',
    'RandomSolarize',
    'RelativeDepthTarget',
    'SegFlip',
]
