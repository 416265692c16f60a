"""Transforms. None of these needs a host."""

from .load_image import LoadImage

__all__ = [
    'LoadImage',
]
