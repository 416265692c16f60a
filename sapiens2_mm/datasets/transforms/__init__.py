"""Transforms. None of these needs a host; those that do: ``sapiens2_mm.datasets``."""

from .background import RandomBackground, RandomMatteBackground
from .degradation import (
    CoarseDropout,
    RandomBlur,
    RandomDownUpSample,
    RandomGaussianBlur,
    RandomGaussianNoise,
    RandomJpeg,
)
from .filters import FilterByMask, FilterFlatAlbedo, FilterForeground
from .formatting import PackDenseInputs
from .geometry import DenseRandomCrop, DenseRandomFlip, DenseRandomScale, SegFlip
from .loading import LoadDenseAnnotations, LoadImage, LoadMatte, LoadSegAnnotations
from .matting import RandomAlphaCrop, RandomMatteRotate
from .multi_view import MultiViewCrop
from .photometric import PhotometricDistortion, RandomSolarize
from .resize import AreaCubicResize, DenseResize, Letterbox
from .targets import PointmapTarget, RelativeDepthTarget
from .token_masks import DrawTokenMasks

__all__ = [
    'AreaCubicResize',
    'CoarseDropout',
    'DenseRandomCrop',
    'DenseRandomFlip',
    'DenseRandomScale',
    'DenseResize',
    'DrawTokenMasks',
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
