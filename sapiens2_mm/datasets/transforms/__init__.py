"""Transforms. None of these needs a host; those that do: ``sapiens2_mm.datasets``."""

from .corruption import CoarseDropout, RandomBlur
from .load_image import LoadImage

__all__ = [
    'CoarseDropout',
    'LoadImage',
    'RandomBlur',
]
