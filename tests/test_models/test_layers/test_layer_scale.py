"""Layer scale."""

import torch

from sapiens2_mm.models.layers import LayerScale


def test_scales_channels():
    scale = LayerScale(3, init_value=0.5)
    x = torch.tensor([[2.0, 4.0, 6.0]])
    assert scale(x).tolist() == [[1.0, 2.0, 3.0]]
    with torch.no_grad():
        scale.weight.zero_()
    scale.reset_parameters()
    assert scale.weight.tolist() == [0.5, 0.5, 0.5]
