"""Patches in row order, each projected on its own."""

import torch

from sapiens2_mm.models.layers import PatchEmbed


def test_equals_a_matrix_product_per_patch():
    torch.manual_seed(0)
    embed = PatchEmbed(in_channels=3, embed_dims=8, patch_size=4)
    x = torch.randn(2, 3, 8, 12)
    tokens, grid = embed(x)
    assert grid == (2, 3)
    patch = x[:, :, 4:8, 8:12].flatten(1)  # row 1, column 2: token 5
    weight = embed.projection.weight.flatten(1)
    expected = patch @ weight.T + embed.projection.bias
    torch.testing.assert_close(tokens[:, 5], expected)
