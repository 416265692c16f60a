"""Parts of pretraining. ``Sapiens2Pretrain`` itself needs mmpretrain."""

from .centring import EMACentring, SinkhornCentring
from .ema_teacher import EMATeacher
from .export import export_backbone
from .mae_decoder import MAEDecoder
from .masking import BlockPatchMask, TokenMask
from .prototype_head import PrototypeHead

__all__ = [
    'BlockPatchMask',
    'EMACentring',
    'EMATeacher',
    'MAEDecoder',
    'PrototypeHead',
    'SinkhornCentring',
    'TokenMask',
    'export_backbone',
]
