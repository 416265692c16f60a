"""Encoding a subset of the tokens, as masked pretraining does."""

import pytest
import torch

from sapiens2_mm.engine.parallelize import recompute
from sapiens2_mm.models import Sapiens2

TINY = dict(embed_dims=32, num_layers=18, num_heads=4, feedforward_channels=64)
NUM_PREFIX = 9
IDS = torch.tensor([[0, 2, 3, 7, 11], [1, 4, 5, 9, 10]])  # of 12


def tiny(**options):
    torch.manual_seed(0)
    options.setdefault('img_size', (64, 48))
    model = Sapiens2(TINY, rope_dtype='fp32', **options)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.2)
    return model.eval()


@torch.no_grad()
def test_equals_attention_restricted_to_the_kept_tokens(monkeypatch):
    model = tiny()
    image = torch.randn(2, 3, 64, 48)
    part = model(image, IDS)[0]

    allowed = torch.zeros(2, 1, 1, NUM_PREFIX + 12, dtype=torch.bool)
    allowed[..., :NUM_PREFIX] = True
    for b in range(2):
        allowed[b, ..., NUM_PREFIX + IDS[b]] = True
    attend = torch.nn.functional.scaled_dot_product_attention

    def restricted(*args, **kwargs):
        return attend(*args, attn_mask=allowed, **kwargs)

    monkeypatch.setattr(torch.nn.functional, 'scaled_dot_product_attention', restricted)
    full = model(image)[0]
    prefix = torch.arange(NUM_PREFIX).expand(2, -1)
    rows = torch.cat((prefix, NUM_PREFIX + IDS), dim=1)
    expected = torch.stack([full[b, rows[b]] for b in range(2)])
    torch.testing.assert_close(part, expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_order_of_ids_is_the_order_of_tokens():
    model = tiny()
    image = torch.randn(2, 3, 64, 48)
    order = torch.tensor([4, 0, 3, 1, 2])
    plain, permuted = model(image, IDS)[0], model(image, IDS[:, order])[0]
    torch.testing.assert_close(permuted[:, :NUM_PREFIX], plain[:, :NUM_PREFIX])
    torch.testing.assert_close(permuted[:, NUM_PREFIX:], plain[:, NUM_PREFIX + order])


@torch.no_grad()
def test_all_ids_is_the_plain_forward_and_dropped_pixels_do_not_matter():
    model = tiny()
    image = torch.randn(2, 3, 64, 48)
    everything = torch.arange(12).expand(2, -1)
    torch.testing.assert_close(model(image, everything)[0], model(image)[0])
    changed = image.clone()
    changed[0, :, :16, 16:32] = 5.0  # patch 1 of image 0 is dropped
    assert torch.equal(model(changed, IDS)[0], model(image, IDS)[0])


def masked_after_the_windows(model, image):
    """What ``model(image, IDS)`` is, with all windows computed."""
    tokens, rope, grid = model.embed(image)
    assert grid == (4, 3)
    prefix = torch.arange(NUM_PREFIX).expand(2, -1)
    rows = torch.cat((prefix, NUM_PREFIX + IDS), dim=1)
    tokens = torch.stack([tokens[b, rows[b]] for b in range(2)])
    return model.encode(tokens, tuple(t[0, rows].unsqueeze(1) for t in rope))[0]


def test_windows_dropped_before_have_the_gradients_of_windows_masked_after():
    model = tiny(use_tokenizer=True, img_size=(256, 192)).double().train()
    model.tokenizer.max_bytes = 0  # one window at a time
    image = torch.randn(2, 3, 256, 192).double()
    grads = []
    for out in (model(image, IDS)[0], masked_after_the_windows(model, image)):
        grads.append(torch.autograd.grad(out.square().mean(), model.parameters()))
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other)


@torch.no_grad()
def test_with_tokenizer_equals_dropping_window_tokens():
    model = tiny(use_tokenizer=True, img_size=(256, 192))
    image = torch.randn(2, 3, 256, 192)
    part = model(image, IDS)[0]
    expected = masked_after_the_windows(model, image)
    torch.testing.assert_close(part, expected, rtol=1e-5, atol=1e-5)
    changed = image.clone()
    changed[0, :, :64, 64:128] = 5.0
    assert torch.equal(model(changed, IDS)[0], part)


@torch.no_grad()
def test_views_of_several_sizes_encode_at_once():
    model = tiny()
    large, small = torch.randn(2, 3, 64, 48), torch.randn(2, 3, 16, 80)
    expected = torch.cat((model(large, IDS)[0], model(small)[0]))
    tokens, rope, _ = model.embed(large, IDS)
    more_tokens, more_rope, _ = model.embed(small)
    rope = tuple(
        torch.cat((a, b.expand_as(a))) for a, b in zip(rope, more_rope, strict=True)
    )
    (out,) = model.encode(torch.cat((tokens, more_tokens)), rope)
    torch.testing.assert_close(out, expected)


def test_augmented_positions_and_gradients():
    model = tiny(rope_jitter=2.0, out_type='cls_token').train()
    recompute(model, 'full')
    out = model(torch.randn(2, 3, 64, 48), IDS)[0]
    assert out.shape == (2, 32)
    out.sum().backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize('ids', [IDS[:1], IDS[0], IDS + 1, IDS - 1])
@pytest.mark.parametrize('options', [{}, dict(use_tokenizer=True, window_size=1)])
def test_wrong_ids(ids, options):
    message = r'ids_keep must be \(2, n\) indices of 12 tokens, got tensor'
    with pytest.raises(ValueError, match=message):
        tiny(**options)(torch.zeros(2, 3, 64, 48), ids)


def test_a_subset_has_no_feature_map():
    with pytest.raises(ValueError, match="ids_keep needs out_type 'raw' or"):
        tiny(out_type='featmap')(torch.zeros(2, 3, 64, 48), IDS)
