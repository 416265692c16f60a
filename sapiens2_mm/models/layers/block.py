"""Transformer block."""

from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from .attention import GroupedQueryAttention
from .ffn import SwiGLU
from .norm import RMSNorm


class TransformerBlock(nn.Module):
    """Pre-norm attention and SwiGLU, each on a residual branch.

    Args:
        embed_dims: C.
        num_heads: query heads.
        num_kv_heads: key/value heads.
        feedforward_channels: hidden channels of the SwiGLU.
        qk_norm: normalize queries and keys.
        layer_scale_init_value: start of the learned channel scale on the attention
            branch, 0 builds none; the SwiGLU branch has none.
        drop_path_rate: probability to drop a branch of a sample while training.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        num_kv_heads: int,
        feedforward_channels: int,
        qk_norm: bool = True,
        layer_scale_init_value: float = 1e-4,
        drop_path_rate: float = 0.0,
    ) -> None:
        super().__init__()
        self.ln1 = RMSNorm(embed_dims)
        self.attn = GroupedQueryAttention(
            embed_dims, num_heads, num_kv_heads, qk_norm, layer_scale_init_value
        )
        self.ln2 = RMSNorm(embed_dims)
        self.ffn = SwiGLU(embed_dims, feedforward_channels)
        self.drop_path = DropPath(drop_path_rate) if drop_path_rate else nn.Identity()

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """(B, N, C) to (B, N, C); ``rope`` as in ``GroupedQueryAttention``."""
        x = x + self.drop_path(self.attn(self.ln1(x), rope))
        return x + self.drop_path(self.ffn(self.ln2(x)))
