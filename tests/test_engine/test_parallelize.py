"""Recomputed and compiled blocks: same numbers, same names, copies on their own."""

import copy

import pytest
import torch
from mmengine.model import ExponentialMovingAverage
from torch import nn

from sapiens2_mm.engine.parallelize import compile_blocks, recompute
from sapiens2_mm.models import Sapiens2

TINY = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64)


def tiny(arch: dict = TINY, **options) -> nn.Module:
    torch.manual_seed(0)
    model = Sapiens2(arch, img_size=(64, 48), **options)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    return model.train()


def step(model: nn.Module, size=(64, 48)) -> tuple[list[torch.Tensor], int]:
    """Loss and gradients, and the bytes that the forward pass leaves behind."""
    image = torch.randn(8, 3, *size, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(1)
    with torch.profiler.profile(profile_memory=True) as profile:
        loss = model(image)[0].square().mean()
    num_bytes = sum(e.self_cpu_memory_usage for e in profile.key_averages())
    loss.backward()
    return [loss.detach(), *(p.grad for p in model.parameters())], num_bytes


@pytest.mark.parametrize('use_tokenizer', [False, True])
def test_recomputing_gives_the_same_gradients_with_less_memory(use_tokenizer):
    options = dict(use_tokenizer=use_tokenizer, window_size=2, drop_path_rate=0.3)
    options['img_size'] = size = (64, 64)
    torch.manual_seed(0)
    model = Sapiens2(TINY, **options)
    model.init_weights()
    names, used = list(model.state_dict()), {}
    for mode in ('none', 'selective', 'full', 'none'):
        recompute(model.train(), mode)
        model.zero_grad(set_to_none=True)
        out, used[mode] = step(model, size)
        if mode == 'none':
            expected = out
        for value, wanted in zip(out, expected, strict=True):
            torch.testing.assert_close(value, wanted, rtol=1e-6, atol=1e-6)
    assert used['full'] < 0.5 * used['selective'] < 0.5 * 0.8 * used['none'], used
    assert list(model.state_dict()) == names
    with pytest.raises(ValueError, match="'none', 'selective' or 'full', got True"):
        recompute(model, True)


@pytest.mark.parametrize('depth', [3, 8])
def test_time_to_compile_does_not_grow_with_depth(depth):
    """Nor with the two ways into the blocks."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    torch._dynamo.reset()
    model = tiny(dict(TINY, num_layers=depth), drop_path_rate=0.2)
    expected = step(model)[0]
    compile_blocks(model, backend=backend)
    model.zero_grad()
    for value, wanted in zip(step(model)[0], expected, strict=True):
        torch.testing.assert_close(value, wanted, rtol=1e-5, atol=1e-5)
    assert len(graphs) == 3  # the first block drops nothing; a rate; any rate
    model.encode(*model.embed(torch.zeros(8, 3, 64, 48))[:2])
    assert len(graphs) == 3


def test_a_copy_computes_with_its_own_weights():
    """As that of an EMA teacher, or of mmengine's ``EMAHook``."""
    model = tiny()
    recompute(model, 'full')
    compile_blocks(model, backend='eager')
    average = ExponentialMovingAverage(model).module
    for parameter in average.parameters():
        parameter.data.zero_()
    assert model(torch.ones(1, 3, 64, 48))[0].abs().sum() > 0
    assert copy.deepcopy(average)(torch.ones(1, 3, 64, 48))[0].abs().sum() == 0
