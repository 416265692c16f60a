import math

import pytest
import torch

from sapiens2_mm.models.layers.positions import sincos_positions
from sapiens2_mm.models.selfsup import BlockPatchMask, MAEDecoder

GRID = (8, 6)


def tiny_decoder() -> MAEDecoder:
    torch.manual_seed(0)
    decoder = MAEDecoder(
        in_channels=16, out_channels=12, embed_dims=32, num_layers=2, num_heads=4
    )
    decoder.init_weights()
    return decoder


def test_positions_of_a_rectangular_grid():
    table = sincos_positions((3, 2), 8)
    assert table.shape == (6, 8)
    assert torch.equal(table[0], torch.tensor([0.0, 0, 1, 1, 0, 0, 1, 1]))
    row, column = 2, 1  # the last token; frequencies are 1 and 1/100
    expected = [
        math.sin(row), math.sin(row / 100), math.cos(row), math.cos(row / 100),
        math.sin(column), math.sin(column / 100),
        math.cos(column), math.cos(column / 100),
    ]  # fmt: skip
    torch.testing.assert_close(table[5], torch.tensor(expected))


def test_restore_puts_visible_tokens_back():
    decoder = tiny_decoder()
    mask = BlockPatchMask()(1, 3, GRID)
    visible = torch.randn(3, mask.ids_keep.shape[1], 32)
    tokens = decoder.restore(visible, mask)
    assert tokens.shape == (3, 48, 32)
    index = mask.ids_keep[:, :, None].expand_as(visible)
    assert torch.equal(tokens.gather(1, index), visible)
    hidden = tokens[mask.mask]
    assert torch.equal(hidden, decoder.mask_token[0].expand_as(hidden))


def test_all_patches_are_predicted_from_the_visible_ones():
    decoder = tiny_decoder()
    mask = BlockPatchMask()(1, 2, GRID)
    visible = torch.randn(2, mask.ids_keep.shape[1], 16, requires_grad=True)
    out = decoder(visible, mask, GRID)
    assert out.shape == (2, 48, 12)
    out.square().sum().backward()
    assert (visible.grad.abs().sum(-1) > 0).all()
    assert all(p.grad is not None for p in decoder.parameters())


def test_images_do_not_mix():
    decoder = tiny_decoder()
    mask = BlockPatchMask()(1, 2, GRID)
    visible = torch.randn(2, mask.ids_keep.shape[1], 16)
    before = decoder(visible, mask, GRID)
    visible[1] += 1
    after = decoder(visible, mask, GRID)
    torch.testing.assert_close(after[0], before[0])
    assert not torch.allclose(after[1], before[1])


def test_class_token_reaches_the_patches_if_asked_to():
    decoder = tiny_decoder()
    mask = BlockPatchMask()(1, 2, GRID)
    visible = torch.randn(2, mask.ids_keep.shape[1], 16)
    tokens = torch.randn(2, 2, 16)  # two choices of class tokens
    without = decoder(visible, mask, GRID)
    assert torch.equal(decoder(visible, mask, GRID, tokens[0]), without)
    decoder.use_cls_token = True
    first, second = (decoder(visible, mask, GRID, token) for token in tokens)
    assert first.shape == without.shape
    assert not torch.allclose(first, second)
    # one more key of the attention, and nothing else
    decoder.blocks = decoder.blocks[:0]
    torch.testing.assert_close(
        decoder(visible, mask, GRID, tokens[0]),
        decoder.predict(decoder.norm(decoder.restore(decoder.embed(visible), mask)
                                     + sincos_positions(GRID, 32))),
    )  # fmt: skip


@pytest.mark.parametrize('embed_dims, num_heads', [(32, 3), (34, 2)])
def test_wrong_width(embed_dims, num_heads):
    with pytest.raises(
        ValueError, match=f'={embed_dims} is no .* num_heads={num_heads}'
    ):
        MAEDecoder(16, embed_dims=embed_dims, num_heads=num_heads)
