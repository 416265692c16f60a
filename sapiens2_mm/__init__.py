"""Sapiens2 human-centric vision transformers for the OpenMMLab libraries."""

from . import _import_hooks

__version__ = '0.1.0'

_import_hooks.install()  # before any host: a script may import one right after us
