import pytest
import torch
from mmengine.optim import build_optim_wrapper
from torch import nn


def build(model, **kwargs):
    cfg = dict(
        type='sapiens2_mm.AutocastOptimWrapper',
        optimizer=dict(type='SGD', lr=0.1),
        **kwargs,
    )
    return build_optim_wrapper(model, cfg)


def test_forward_runs_in_bf16_and_parameters_stay_float32():
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    wrapper = build(model)
    before = model.weight.detach().clone()
    with wrapper.optim_context(model):
        out = model(torch.rand(2, 4))
        loss = out.float().square().mean()
    assert out.dtype is torch.bfloat16
    wrapper.update_params(loss)
    assert model.weight.dtype is torch.float32
    assert not torch.equal(model.weight, before)


def test_accumulated_halves_equal_one_whole_batch():
    torch.manual_seed(0)
    x = torch.rand(2, 4)
    whole, halves = nn.Linear(4, 1), nn.Linear(4, 1)
    halves.load_state_dict(whole.state_dict())
    wrapper = build(whole)
    with wrapper.optim_context(whole):
        loss = whole(x).float().square().mean()
    wrapper.update_params(loss)
    wrapper = build(halves, accumulative_counts=2)
    wrapper.initialize_count_status(halves, 0, 2)
    for part in x.split(1):
        with wrapper.optim_context(halves):
            loss = halves(part).float().square().mean()
        wrapper.update_params(loss)
    # each backward pass rounds its gradient to bfloat16
    torch.testing.assert_close(whole.weight, halves.weight, rtol=0, atol=1e-3)


def test_float16_is_refused():
    with pytest.raises(ValueError, match="dtype must be 'bfloat16', got 'float16'"):
        build(nn.Linear(2, 2), dtype='float16')
