"""Window tokenizer: order, independence of windows."""

import pytest
import torch

from sapiens2_mm.models.layers import WindowTokenizer


@pytest.fixture
def tokenizer():
    torch.manual_seed(0)
    module = WindowTokenizer(embed_dims=16, num_heads=2, num_layers=2, window_size=2)
    torch.nn.init.normal_(module.w_cls)
    torch.nn.init.normal_(module.local_pos_embed)
    return module.eval()


def test_each_window_is_computed_alone(tokenizer):
    x = torch.randn(2, 4 * 6, 16)
    out, grid = tokenizer(x, (4, 6))
    assert grid == (2, 3) and out.shape == (2, 6, 16)
    # Window (1, 2): rows 2-3, columns 4-5, row by row.
    window = x[:, [2 * 6 + 4, 2 * 6 + 5, 3 * 6 + 4, 3 * 6 + 5]]
    alone, _ = tokenizer(window, (2, 2))
    torch.testing.assert_close(out[:, 5:], alone)


@torch.no_grad()
@pytest.mark.parametrize('num_windows', [1, 5, 7, 64])
def test_chunks_do_not_change_a_bit(num_windows):
    torch.manual_seed(0)
    module = WindowTokenizer(embed_dims=96, num_heads=3, num_layers=2, window_size=4)
    torch.nn.init.normal_(module.local_pos_embed)
    x = torch.randn(2, 64 * 48, 96)
    expected, _ = module.eval()(x, (64, 48))
    per_window = module.max_bytes / module.chunk_size(x)
    module.max_bytes = int(num_windows * per_window) + 1
    sizes = []
    module.blocks[0].register_forward_hook(
        lambda module, args, out: sizes.append(len(out))
    )
    assert torch.equal(module(x, (64, 48))[0], expected)
    full, rest = divmod(2 * 16 * 12, num_windows)
    assert sizes == [num_windows] * full + [rest] * (rest > 0)


def test_gradients_do_not_depend_on_chunks(tokenizer):
    x = torch.randn(2, 4 * 6, 16)
    grads = []
    for max_bytes in (2**30, 0):
        tokenizer.train().zero_grad()
        tokenizer.max_bytes = max_bytes
        pixels = x.clone().requires_grad_()
        tokenizer(pixels, (4, 6))[0].square().sum().backward()
        grads.append([p.grad.clone() for p in (pixels, *tokenizer.parameters())])
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_a_training_pass_takes_fewer_windows_of_the_same_budget(tokenizer):
    x = torch.randn(1, 4 * 6, 16)
    predicting = tokenizer.chunk_size(x)
    assert tokenizer.train().chunk_size(x) < predicting / 2
    assert tokenizer.chunk_size(x.double()) == tokenizer.chunk_size(x) // 2


def test_subset_of_windows(tokenizer):
    x = torch.randn(2, 4 * 6, 16)
    ids = torch.tensor([[4, 0], [2, 5]])
    full, _ = tokenizer(x, (4, 6))
    part, grid = tokenizer(x, (4, 6), ids)
    assert grid == (2, 3)
    torch.testing.assert_close(part, torch.stack([full[b, ids[b]] for b in range(2)]))


def test_blocks_are_plain(tokenizer):
    names = list(tokenizer.state_dict())
    assert not any('q_norm' in n or 'gamma' in n or 'rope' in n for n in names)
    assert tokenizer.blocks[0].ffn.w12.weight.shape == (2 * 4 * 16, 16)
    assert tokenizer.local_pos_embed.shape == (1, 5, 16)
