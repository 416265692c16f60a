"""SwiGLU: gate first, same numbers with and without gradients."""

import torch

from sapiens2_mm.models.layers import SwiGLU


def test_gate_rows_come_first():
    ffn = SwiGLU(1, 1)
    with torch.no_grad():
        ffn.w12.weight.copy_(torch.tensor([[2.0], [3.0]]))
        ffn.w12.bias.zero_()
        ffn.w3.weight.fill_(1.0)
        ffn.w3.bias.fill_(0.5)
    x = torch.tensor([[1.0]])
    gate = 2.0 / (1 + torch.tensor(-2.0).exp())
    torch.testing.assert_close(ffn(x), (gate * 3.0 + 0.5).view(1, 1))


def test_same_numbers_without_gradients():
    torch.manual_seed(0)
    ffn = SwiGLU(16, 24)
    x = torch.randn(2, 5, 16)
    kept = x.clone()
    expected = ffn(x)
    with torch.no_grad():
        assert torch.equal(ffn(x), expected)
    assert torch.equal(x, kept)


def test_gradient():
    ffn = SwiGLU(4, 6).double()
    x = torch.randn(3, 4, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(ffn, (x,))
