"""Parts of pretraining. ``Sapiens2Pretrain`` itself needs mmpretrain."""

from .centering import EMACentering, SinkhornCentering
from .ema_teacher import EMATeacher
from .export import export_backbone
from .mae_decoder import MAEDecoder
from .masking import BlockPatchMask, TokenMask
from .prototype_head import PrototypeHead

__all__ = [
    'BlockPatchMask',
    'EMACentering',
    'EMATeacher',
    'MAEDecoder',
    'PrototypeHead',
    'SinkhornCentering',
    'TokenMask',
    'export_backbone',
]
