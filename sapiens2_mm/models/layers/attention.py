"""Self-attention with grouped keys and values."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .layer_scale import LayerScale
from .norm import RMSNorm
from .rope import rotate


class GroupedQueryAttention(nn.Module):
    """Multi-head self-attention whose key/value heads may serve several queries.

    Order: project, normalize q and k per head, rotate, attend, merge, project, scale.
    Key/value head ``j`` serves the query heads ``j*r .. j*r + r-1``,
    ``r = num_heads / num_kv_heads``.

    Args:
        embed_dims: C.
        num_heads: query heads.
        num_kv_heads: key/value heads; divides ``num_heads``.
        qk_norm: normalize queries and keys over the head dimension.
        layer_scale_init_value: start of the learned channel scale on the output; 0
            builds none.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        num_kv_heads: int,
        qk_norm: bool = True,
        layer_scale_init_value: float = 1e-4,
    ) -> None:
        super().__init__()
        self.head_dims = embed_dims // num_heads
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        kv_dims = num_kv_heads * self.head_dims
        self.wq = nn.Linear(embed_dims, embed_dims)
        self.wk = nn.Linear(embed_dims, kv_dims)
        self.wv = nn.Linear(embed_dims, kv_dims)
        self.q_norm = RMSNorm(self.head_dims) if qk_norm else nn.Identity()
        self.k_norm = RMSNorm(self.head_dims) if qk_norm else nn.Identity()
        self.proj = nn.Linear(embed_dims, embed_dims)
        self.gamma = nn.Identity()
        if layer_scale_init_value:
            self.gamma = LayerScale(embed_dims, layer_scale_init_value)

    def forward(self, x: Tensor, rope: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Attend over all tokens of a sample.

        Args:
            x: (B, N, C).
            rope: tables of ``RotaryEmbedding`` for the N tokens, or None.

        Returns:
            (B, N, C).
        """
        heads = (self.num_heads, self.head_dims)
        kv_heads = (self.num_kv_heads, self.head_dims)
        q = self.q_norm(self.wq(x).unflatten(2, heads)).transpose(1, 2)  # B heads N D
        k = self.k_norm(self.wk(x).unflatten(2, kv_heads)).transpose(1, 2)
        v = self.wv(x).unflatten(2, kv_heads).transpose(1, 2)
        if rope is not None:
            q, k = rotate(q, rope), rotate(k, rope)
        shared = self.num_kv_heads != self.num_heads
        if shared and not _shares_natively(q):
            repeats = self.num_heads // self.num_kv_heads
            k, v = (y.repeat_interleave(repeats, dim=1) for y in (k, v))
            shared = False
        y = F.scaled_dot_product_attention(q, k, v, enable_gqa=shared)
        return self.gamma(self.proj(y.transpose(1, 2).flatten(2)))


def _shares_natively(q: Tensor) -> bool:
    """Whether a fused kernel reads shared keys in place.

    Elsewhere torch would fall back to attention that stores all scores.
    """
    if q.device.type == 'cuda':
        return q.dtype in (torch.float16, torch.bfloat16)
    return q.device.type == 'cpu'
