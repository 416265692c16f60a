"""Facts of the released files that the models state too."""

import pytest
import torch

from sapiens2_mm.checkpoint.layouts.names import released_periods
from sapiens2_mm.checkpoint.layouts.official import RELEASED_SIZES
from sapiens2_mm.models.backbones.arch import ARCHS
from sapiens2_mm.models.layers import RotaryEmbedding


def test_names_of_sizes_are_those_of_the_backbone():
    assert {
        (arch.embed_dims, arch.num_layers, arch.num_heads): name
        for name, arch in ARCHS.items()
    } == RELEASED_SIZES


@pytest.mark.parametrize('head_dims', [16, 64, 76, 80])
def test_released_periods_are_those_of_the_model(head_dims):
    state = {'x.blocks.0.attn.q_norm.weight': torch.ones(head_dims)}
    periods = released_periods(state, 'x.')
    assert periods.dtype == torch.bfloat16
    assert torch.equal(periods, RotaryEmbedding(head_dims).periods)
