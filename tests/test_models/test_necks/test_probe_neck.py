import torch

from sapiens2_mm.registry import MODELS


def test_probe_neck_by_hand():
    neck = MODELS.build(
        dict(type='sapiens2_mm.ProbeNeck', in_channels=4, out_channels=2)
    )
    neck.init_weights()
    with torch.no_grad():
        neck.conv.weight.zero_()
        neck.conv.bias.copy_(torch.tensor([1.0, -1.0]))
    (out,) = neck((torch.zeros(1, 9, 1, 1), torch.randn(1, 4, 3, 2)))
    assert out.shape == (1, 2, 12, 8)
    expected = torch.nn.functional.gelu(torch.tensor([1.0, -1.0]))
    torch.testing.assert_close(out[0, :, 5, 5], expected)
