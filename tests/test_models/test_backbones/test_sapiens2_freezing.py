"""Frozen parts stay as they are: bit-equal, in evaluation mode, without gradient."""

import pytest
import torch
from mmengine.model import ExponentialMovingAverage

from sapiens2_mm.engine.parallelize import recompute
from sapiens2_mm.models import Sapiens2

TINY = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64)


def frozen_names(model, num_frozen):
    heads = ['patch_embed.', 'cls_token', 'storage_tokens', 'tokenizer.']
    heads += [f'blocks.{n}.' for n in range(num_frozen)]
    if num_frozen == 4:
        heads.append('ln1.')
    if num_frozen <= 0:
        heads = []
    return {n for n, _ in model.named_parameters() if n.startswith(tuple(heads))}


@pytest.mark.parametrize('use_tokenizer', [False, True])
@pytest.mark.parametrize('num_frozen', [-1, 0, 2, 4])
def test_frozen_parts_do_not_move(num_frozen, use_tokenizer):
    torch.manual_seed(0)
    model = Sapiens2(
        TINY,
        img_size=(64, 64),
        frozen_stages=num_frozen,
        use_tokenizer=use_tokenizer,
        drop_path_rate=0.1,
    )
    recompute(model, 'full')
    head = torch.nn.Linear(32, 1)
    expected = frozen_names(model, num_frozen)
    before = {n: p.clone() for n, p in model.named_parameters()}
    average = ExponentialMovingAverage(model, momentum=0.5)

    model.eval()
    model.train()
    assert {n for n, p in model.named_parameters() if not p.requires_grad} == expected
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        [*trained, *head.parameters()], lr=0.01, weight_decay=0.1
    )
    for _ in range(3):
        optimizer.zero_grad()
        out = model(torch.randn(1, 3, 64, 64))[0]
        head(out).square().mean().backward()
        optimizer.step()
        average.update_parameters(model)

    for name, p in model.named_parameters():
        assert torch.equal(p, before[name]) == (name in expected), name
        assert (p.grad is None) == (name in expected), name
    for name, p in average.module.named_parameters():
        assert torch.equal(p, before[name]) == (name in expected), name
    # A module is in evaluation mode exactly if all its parameters are frozen.
    for name, module in model.named_modules():
        own = {n for n, _ in model.named_parameters() if n.startswith(name + '.')}
        if name not in ('', 'blocks') and own:
            assert module.training == (not own <= expected), name


def test_first_trained_block_after_frozen_ones_is_recomputed():
    model = Sapiens2(TINY, img_size=(64, 48), frozen_stages=2).train()
    recompute(model, 'full')
    stored = []
    with torch.autograd.graph.saved_tensors_hooks(stored.append, lambda t: t):
        model(torch.zeros(1, 3, 64, 48))
    assert sum(t.nbytes for t in stored) < 30_000  # the final norm only
