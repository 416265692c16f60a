"""Datasets and transforms. Host classes load on first use."""

from .._lazy import host_getattr
from .transforms import *  # noqa: F403

# class -> (module, host)
HOST_CLASSES: dict[str, tuple[str, str]] = {}
__getattr__ = host_getattr(__name__, HOST_CLASSES)
