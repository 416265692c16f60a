"""Autocast, half precision and tracing of the backbone."""

import warnings

import pytest
import torch

from sapiens2_mm.engine.parallelize import recompute
from sapiens2_mm.models import Sapiens2

TINY = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)


def tiny(**options):
    torch.manual_seed(0)
    model = Sapiens2(TINY, img_size=(64, 64), **options)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.2)
    return model.eval()


@pytest.mark.parametrize('mode', ['none', 'selective', 'full'])
@pytest.mark.parametrize('use_tokenizer', [False, True])
def test_trains_under_autocast_without_a_warning(use_tokenizer, mode):
    model = tiny(use_tokenizer=use_tokenizer).train()
    recompute(model, mode)
    image = torch.randn(2, 3, 64, 64)
    expected = model(image)[0].detach()
    with warnings.catch_warnings(), torch.autocast('cpu', torch.bfloat16):
        warnings.simplefilter('error')
        out = model(image)[0]
        assert out.dtype == torch.float32  # the residual stream is not rounded
        out.square().mean().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    assert (out - expected).norm() / expected.norm() < 0.03


@torch.no_grad()
@pytest.mark.parametrize('rope_dtype', ['bf16', 'fp32'])
@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_inference_under_autocast(dtype, rope_dtype):
    model = tiny(rope_dtype=rope_dtype)
    image = torch.randn(2, 3, 64, 64)
    expected = model(image)[0]
    with torch.autocast('cpu', dtype):
        out = model(image)[0]
    assert (out - expected).norm() / expected.norm() < 0.03


@torch.no_grad()
@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision(dtype):
    model = tiny()
    image = torch.randn(2, 3, 64, 64)
    expected = model(image)[0]
    out = model.to(dtype)(image.to(dtype))[0]
    assert out.dtype == dtype
    assert (out.float() - expected).norm() / expected.norm() < 0.03


@torch.no_grad()
def test_result_does_not_depend_on_the_batch():
    model = tiny(out_type='featmap')
    images = torch.randn(3, 3, 64, 64)
    together = model(images)[0]
    for n in range(3):
        torch.testing.assert_close(model(images[n : n + 1])[0], together[n : n + 1])


@torch.no_grad()
@pytest.mark.parametrize(
    ('options', 'shape'),
    [
        (dict(out_type='raw'), (1 + 8 + 16, 32)),
        (dict(out_type='cls_token'), (32,)),
        (dict(out_type='featmap'), (32, 4, 4)),
        (dict(out_type='featmap', use_tokenizer=True), (32, 1, 1)),
    ],
)
def test_exports_with_a_free_batch_size(options, shape):
    model = tiny(**options)
    image = torch.randn(2, 3, 64, 64)
    model(image)  # caches the rotary tables; the graph must not hold them
    program = torch.export.export(
        model, (image,), dynamic_shapes={'x': {0: torch.export.Dim('batch')}}
    )
    assert not program.constants
    for batch_size in (1, 2, 5):
        image = torch.randn(batch_size, 3, 64, 64)
        (out,) = program.module()(image)
        assert out.shape == (batch_size, *shape)
        torch.testing.assert_close(out, model(image)[0])
