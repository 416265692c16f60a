"""Building blocks of backbones and heads: plain ``nn.Module``, no registry."""

from .attention import GroupedQueryAttention
from .block import TransformerBlock
from .conv_stack import make_conv_layers, make_deconv_layers, make_upsample_blocks
from .ffn import SwiGLU
from .layer_scale import LayerScale
from .norm import ChannelRMSNorm, RMSNorm
from .patch_embed import PatchEmbed
from .rope import RotaryEmbedding, rotate
from .window_tokenizer import WindowTokenizer

__all__ = [
    'ChannelRMSNorm',
    'GroupedQueryAttention',
    'LayerScale',
    'PatchEmbed',
    'RMSNorm',
    'RotaryEmbedding',
    'SwiGLU',
    'TransformerBlock',
    'WindowTokenizer',
    'make_conv_layers',
    'make_deconv_layers',
    'make_upsample_blocks',
    'rotate',
]
