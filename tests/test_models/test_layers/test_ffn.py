"""SwiGLU: gate first, same numbers with and without gradients."""

import torch

from sapiens2_mm.models.layers import SwiGLU, ffn


def test_gate_rows_come_first():
    module = SwiGLU(1, 1)
    with torch.no_grad():
        module.w12.weight.copy_(torch.tensor([[2.0], [3.0]]))
        module.w12.bias.zero_()
        module.w3.weight.fill_(1.0)
        module.w3.bias.fill_(0.5)
    x = torch.tensor([[1.0]])
    gate = 2.0 / (1 + torch.tensor(-2.0).exp())
    torch.testing.assert_close(module(x), (gate * 3.0 + 0.5).view(1, 1))


def test_same_numbers_without_gradients(monkeypatch):
    torch.manual_seed(0)
    module = SwiGLU(16, 24)
    x = torch.randn(2, 5, 16)
    kept = x.clone()
    expected = module(x)
    with torch.no_grad():
        assert torch.equal(module(x), expected)
        monkeypatch.setattr(ffn, '_CPU_ROWS', 3)
        sizes = []
        module.w12.register_forward_hook(lambda m, args, out: sizes.append(len(out)))
        torch.testing.assert_close(module(x), expected)
        torch.testing.assert_close(module(x.transpose(0, 1)), expected.transpose(0, 1))
    assert sizes == [3, 3, 2, 2] * 2
    assert torch.equal(x, kept)


def test_no_tokens():
    with torch.no_grad():
        assert SwiGLU(16, 24)(torch.zeros(0, 5, 16)).shape == (0, 5, 16)


def test_gradient():
    module = SwiGLU(4, 6).double()
    x = torch.randn(3, 4, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(module, (x,))
