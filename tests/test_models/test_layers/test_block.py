"""Transformer block: residual branches and drop path."""

import torch

from sapiens2_mm.models.layers import TransformerBlock


def test_is_two_residual_branches():
    torch.manual_seed(0)
    block = TransformerBlock(32, 4, 2, 48)
    torch.nn.init.uniform_(block.attn.gamma.weight)
    x = torch.randn(2, 5, 32)
    y = x + block.attn(block.ln1(x))
    torch.testing.assert_close(block(x), y + block.ffn(block.ln2(y)))


def test_norm_is_root_mean_square():
    norm = TransformerBlock(2, 1, 1, 4).ln1
    x = torch.tensor([[3.0, 4.0]])
    torch.testing.assert_close(norm(x), x / (12.5 + 1e-6) ** 0.5)


def test_drop_path_drops_branches_of_samples_while_training():
    torch.manual_seed(0)
    block = TransformerBlock(32, 4, 4, 48, drop_path_rate=0.5)
    x = torch.randn(64, 3, 32)
    y = block(x)
    untouched = (y == x).flatten(1).all(dim=1)
    assert 5 < untouched.sum() < 30  # both branches dropped: a quarter of 64
    block.eval()
    assert not (block(x) == x).flatten(1).all(dim=1).any()
