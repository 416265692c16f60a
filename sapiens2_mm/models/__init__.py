"""Backbones, heads, losses and estimators. Host classes load on first use."""

from .._lazy import host_getattr
from .backbones import *  # noqa: F403
from .estimators import *  # noqa: F403
from .heads import *  # noqa: F403
from .losses import *  # noqa: F403
from .necks import *  # noqa: F403
from .selfsup import *  # noqa: F403

# class -> (module, host)
HOST_CLASSES = {
    'SapiensV1': ('sapiens2_mm.models.backbones.sapiens_v1', 'mmpretrain'),
    'Sapiens2PoseHead': ('sapiens2_mm.models.heads.pose_head', 'mmpose'),
    'Sapiens2PoseTTAModel': ('sapiens2_mm.models.estimators.pose_tta', 'mmpose'),
    'Sapiens2Pretrain': (
        'sapiens2_mm.models.selfsup.sapiens2_pretrain',
        'mmpretrain',
    ),
    'Sapiens2SegHead': ('sapiens2_mm.models.heads.seg_head', 'mmseg'),
    'Sapiens2Segmentor': ('sapiens2_mm.models.segmentors.segmentor', 'mmseg'),
    'Sapiens2SegTTAModel': ('sapiens2_mm.models.segmentors.seg_tta', 'mmseg'),
}
__getattr__ = host_getattr(__name__, HOST_CLASSES)
