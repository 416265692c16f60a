"""Backbones, heads, losses and estimators. Host classes load on first use."""

from .._lazy import host_getattr
from .backbones import *  # noqa: F403
from .heads import *  # noqa: F403
from .losses import *  # noqa: F403

# class -> (module, host)
HOST_CLASSES = {
    'Sapiens2PoseHead': ('sapiens2_mm.models.heads.pose_head', 'mmpose'),
}
__getattr__ = host_getattr(__name__, HOST_CLASSES)
