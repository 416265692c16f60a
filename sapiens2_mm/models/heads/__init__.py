"""Heads. Those of a host load on first use."""

from .albedo_head import AlbedoHead
from .depth_head import DepthHead
from .matting_head import MattingHead
from .normal_head import NormalHead
from .pointmap_head import PointmapHead
from .sapiens_v1_dense import SapiensV1DepthHead, SapiensV1NormalHead

__all__ = [
    'AlbedoHead',
    'DepthHead',
    'MattingHead',
    'NormalHead',
    'PointmapHead',
    'SapiensV1DepthHead',
    'SapiensV1NormalHead',
]
