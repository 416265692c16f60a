import torch
from torch import nn

from sapiens2_mm.checkpoint import SkipInit


class Layer(nn.Module):
    """Weights and buffers made in the ways that layers make them."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.conv = nn.Conv2d(3, 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(2)
        self.scale = nn.Parameter(torch.full((2,), 0.5))
        self.register_buffer('mean', torch.tensor([1.0, 2.0]), persistent=False)
        self.register_buffer('filled', nn.init.constant_(torch.zeros(2), 3.0))
        self.rates = torch.linspace(0, 1, 3).tolist()


def test_weights_stand_on_meta_and_everything_else_is_real():
    torch.manual_seed(0)
    state = torch.get_rng_state()
    with SkipInit(on_meta=True):
        layer = Layer()
    assert torch.equal(torch.get_rng_state(), state)
    assert layer.linear.weight.is_meta and layer.linear.bias.is_meta
    assert layer.conv.weight.is_meta
    assert isinstance(layer.linear.weight, nn.Parameter)
    assert layer.mean.tolist() == [1.0, 2.0]
    assert layer.filled.tolist() == [3.0, 3.0]
    assert layer.norm.running_var.tolist() == [1.0, 1.0]
    assert layer.scale.tolist() == [0.5, 0.5]
    assert layer.rates == [0.0, 0.5, 1.0]
    assert torch.empty(2, device='cpu').device.type == 'cpu'
    assert not torch.empty(2).is_meta  # only while it is active


def test_without_meta_nothing_is_drawn():
    state = torch.get_rng_state()
    with SkipInit():
        layer = Layer()
    assert torch.equal(torch.get_rng_state(), state)
    assert not layer.linear.weight.is_meta
    assert layer.filled.tolist() == [3.0, 3.0]
    with SkipInit():
        assert nn.init.normal_(tensor=torch.ones(1)) == 1.0
