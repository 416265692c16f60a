import torch

from sapiens2_mm.models.selfsup import PrototypeHead


def tiny_head() -> PrototypeHead:
    torch.manual_seed(0)
    head = PrototypeHead(8, hidden_dims=16, bottleneck_dims=4, num_prototypes=10)
    head.init_weights()
    return head


def test_logits_are_products_with_a_unit_vector():
    head = tiny_head()
    x = torch.randn(3, 8)
    logits = head(x)
    unit = head.mlp(x)
    unit = unit / unit.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(logits, unit @ head.prototypes.weight.T)
    assert head.prototypes.bias is None


def test_logits_stay_float32_under_autocast():
    head = tiny_head()
    with torch.autocast('cpu', dtype=torch.bfloat16):
        logits = head(torch.randn(3, 8))
    assert logits.dtype == torch.float32
    # not values rounded to bf16
    assert not torch.equal(logits, logits.bfloat16().float())


def test_frozen_prototypes_get_a_gradient_of_zero():
    head, x = tiny_head(), torch.randn(3, 8)
    assert torch.equal(head(x, frozen_prototypes=True), head(x))
    head(x, frozen_prototypes=True).square().sum().backward()
    assert head.prototypes.weight.grad.abs().max() == 0
    assert head.mlp[0].weight.grad.abs().max() > 0


def test_initial_weights():
    sizes = dict(hidden_dims=128, bottleneck_dims=64, num_prototypes=512)
    head = PrototypeHead(64, **sizes)
    head.init_weights()
    for layer in (head.mlp[0], head.mlp[2], head.mlp[4]):
        assert abs(float(layer.weight.detach().std()) - 0.02) < 0.001
    lengths = head.prototypes.weight.detach().norm(dim=1)
    assert abs(float(lengths.mean()) - 1) < 0.03  # whatever bottleneck_dims
    assert abs(float(head(torch.randn(99, 64)).detach().std()) - 0.125) < 0.03
    small = PrototypeHead(64, **sizes, prototype_std=0.02)
    small.init_weights()
    assert abs(float(small.prototypes.weight.detach().std()) - 0.02) < 0.001
    assert float(head.mlp[0].bias.detach().abs().max()) == 0
