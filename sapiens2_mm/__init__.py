"""Sapiens2 human-centric vision transformers for the OpenMMLab libraries."""

from . import compat as _compat

__version__ = '0.1.0'

_compat.install()  # before any host: a script may import one right after us
