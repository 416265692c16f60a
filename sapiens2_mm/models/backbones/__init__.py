"""Vision transformer backbones."""

from .sapiens2 import Sapiens2

__all__ = ['Sapiens2']
