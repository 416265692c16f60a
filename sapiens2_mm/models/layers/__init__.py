"""Building blocks of the backbone: plain ``nn.Module``, no registry."""

from .attention import GroupedQueryAttention
from .block import TransformerBlock
from .ffn import SwiGLU
from .layer_scale import LayerScale
from .norm import RMSNorm
from .patch_embed import PatchEmbed
from .rope import RotaryEmbedding, rotate
from .window_tokenizer import WindowTokenizer

__all__ = [
    'GroupedQueryAttention',
    'LayerScale',
    'PatchEmbed',
    'RMSNorm',
    'RotaryEmbedding',
    'SwiGLU',
    'TransformerBlock',
    'WindowTokenizer',
    'rotate',
]
