"""Attention against explicit formulas."""

import pytest
import torch

from sapiens2_mm.models.layers import (
    GroupedQueryAttention,
    RotaryEmbedding,
    attention,
    rotate,
)


def explicit(attn, x, rope=None):
    """Every step written out; key/value head j serves query heads 2j and 2j+1."""
    batch, tokens, _ = x.shape
    size = attn.head_dims

    def norm(y, weight):
        return y / (y.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * weight

    q = attn.wq(x).view(batch, tokens, -1, size)
    k = attn.wk(x).view(batch, tokens, -1, size)
    v = attn.wv(x).view(batch, tokens, -1, size)
    q, k = norm(q, attn.q_norm.weight), norm(k, attn.k_norm.weight)
    if rope is not None:
        q, k = (rotate(y.transpose(1, 2), rope).transpose(1, 2) for y in (q, k))
    repeat = attn.num_heads // attn.num_kv_heads
    heads = []
    for h in range(attn.num_heads):
        scores = q[:, :, h] @ k[:, :, h // repeat].transpose(1, 2) / size**0.5
        heads.append(scores.softmax(-1) @ v[:, :, h // repeat])
    return attn.proj(torch.cat(heads, dim=-1)) * attn.gamma.weight


@pytest.mark.parametrize('num_kv_heads', [4, 2])
def test_equals_the_written_out_formula(num_kv_heads):
    torch.manual_seed(0)
    attn = GroupedQueryAttention(32, 4, num_kv_heads)
    torch.nn.init.uniform_(attn.gamma.weight)
    torch.nn.init.uniform_(attn.q_norm.weight)
    rope = RotaryEmbedding(8, 1, dtype='fp32')((3, 2))
    x = torch.randn(2, 7, 32)
    for table in (None, rope):
        torch.testing.assert_close(attn(x, table), explicit(attn, x, table))
    with torch.no_grad():
        torch.testing.assert_close(attn(x, rope), explicit(attn, x, rope))


def test_same_numbers_where_no_kernel_shares_keys(monkeypatch):
    torch.manual_seed(0)
    attn = GroupedQueryAttention(32, 4, 2)
    x = torch.randn(2, 7, 32)
    expected = attn(x)
    monkeypatch.setattr(attention, '_shares_natively', lambda q: False)
    torch.testing.assert_close(attn(x), expected)


def test_table_per_sample_equals_sample_by_sample():
    torch.manual_seed(0)
    attn = GroupedQueryAttention(32, 4, 2)
    table = RotaryEmbedding(8, 1, dtype='fp32')((3, 2))
    x = torch.randn(2, 4, 32)
    rows = torch.tensor([[0, 1, 4, 6], [0, 2, 3, 5]])
    out = attn(x, tuple(t[0, rows].unsqueeze(1) for t in table))
    for b in range(2):
        one = attn(x[b : b + 1], tuple(t[:, rows[b]] for t in table))
        torch.testing.assert_close(out[b : b + 1], one)


def test_parameters_of_the_two_kinds():
    shared = GroupedQueryAttention(32, 4, 2)
    assert shared.wq.weight.shape == (32, 32)
    assert shared.wk.weight.shape == shared.wv.weight.shape == (16, 32)
    assert shared.gamma.weight.eq(1e-4).all()
    plain = GroupedQueryAttention(32, 4, 4, qk_norm=False, layer_scale_init_value=0)
    names = {f'{m}.{p}' for m in ('wq', 'wk', 'wv', 'proj') for p in ('weight', 'bias')}
    assert set(plain.state_dict()) == names
