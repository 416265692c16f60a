import copy

import pytest
import torch
from mmengine.optim import build_optim_wrapper
from torch import nn

from sapiens2_mm.models import Sapiens2
from sapiens2_mm.registry import MODELS

ARCH = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64)


class Model(nn.Module):
    def __init__(self, **kwargs):
        super().__init__()
        self.backbone = Sapiens2(
            arch=ARCH, img_size=(64, 48), out_type='featmap', **kwargs
        )
        self.head = nn.Conv2d(32, 5, 1)

    def forward(self, x):
        return self.head(self.backbone(x)[-1])


def wrapper_cfg(rate=0.5, **paramwise):
    return dict(
        type='OptimWrapper',
        optimizer=dict(type='AdamW', lr=1.0, weight_decay=0.1),
        constructor='sapiens2_mm.LayerDecayOptimWrapperConstructor',
        paramwise_cfg=dict(layer_decay_rate=rate, **paramwise),
    )


def settings_by_name(wrapper):
    return {
        name: (group['lr'], group['weight_decay'])
        for group in wrapper.optimizer.param_groups
        for name in group['param_names']
    }


def test_rates_and_weight_decay_follow_depth():
    model = Model()
    found = settings_by_name(build_optim_wrapper(model, wrapper_cfg()))
    assert set(found) == {name for name, _ in model.named_parameters()}
    # 4 layers: id 0 is scaled by 0.5 ** 5, block n by 0.5 ** (4 - n), the rest by 1
    assert found['backbone.patch_embed.projection.weight'] == (0.5**5, 0.1)
    assert found['backbone.patch_embed.projection.bias'] == (0.5**5, 0.0)
    assert found['backbone.cls_token'] == (0.5**5, 0.1)
    assert found['backbone.storage_tokens'] == (0.5**5, 0.1)
    assert found['backbone.blocks.0.attn.wq.weight'] == (0.5**4, 0.1)
    assert found['backbone.blocks.3.attn.gamma.weight'] == (0.5, 0.0)
    assert found['backbone.blocks.3.ffn.w12.weight'] == (0.5, 0.1)
    assert found['backbone.ln1.weight'] == (1.0, 0.0)
    assert found['head.weight'] == (1.0, 0.1)
    assert found['head.bias'] == (1.0, 0.0)


def test_groups_are_few_and_config_is_untouched():
    cfg = wrapper_cfg()
    before = copy.deepcopy(cfg)
    wrapper = build_optim_wrapper(Model(), cfg)
    assert len(wrapper.optimizer.param_groups) == 12  # 6 depths x decayed or not
    assert cfg == before


def test_longest_custom_key_counts():
    cfg = wrapper_cfg(
        custom_keys={
            'head': dict(lr_mult=10.0),
            'head.weight': dict(lr_mult=2.0, decay_mult=0.0),
        }
    )
    found = settings_by_name(build_optim_wrapper(Model(), cfg))
    assert found['head.weight'] == (2.0, 0.0)
    assert found['head.bias'] == (10.0, 0.0)


@pytest.mark.parametrize('frozen_stages', [0, 2, 4])
def test_frozen_parameters_are_left_out_and_stay_bit_equal(frozen_stages):
    torch.manual_seed(0)
    model = Model(frozen_stages=frozen_stages)
    wrapper = build_optim_wrapper(model, wrapper_cfg())
    trained = set(settings_by_name(wrapper))
    assert trained == {n for n, p in model.named_parameters() if p.requires_grad}
    model.train()
    before = copy.deepcopy(model.state_dict())
    for _ in range(3):
        wrapper.update_params(model(torch.rand(2, 3, 64, 48)).square().mean())
    for name, value in model.state_dict().items():
        moved = not torch.equal(value, before[name])
        assert moved == (name in trained), name


def test_serves_a_backbone_of_mmpretrain():
    pytest.importorskip('mmpretrain')
    model = nn.Module()
    model.backbone = MODELS.build(
        dict(
            type='mmpretrain.VisionTransformer',
            _scope_='mmpretrain',
            arch=dict(
                embed_dims=16, num_layers=2, num_heads=2, feedforward_channels=32
            ),
            img_size=32,
        )
    )
    found = settings_by_name(build_optim_wrapper(model, wrapper_cfg()))
    assert found['backbone.patch_embed.projection.weight'][0] == 0.5**3
    assert found['backbone.layers.1.attn.qkv.weight'] == (0.5, 0.1)
    assert found['backbone.pos_embed'] == (0.5**3, 0.0)
    assert found['backbone.ln1.weight'] == (1.0, 0.0)


def test_errors():
    with pytest.raises(ValueError, match=r"unknown keys \['decay'\]"):
        build_optim_wrapper(Model(), wrapper_cfg(decay=0.5))
    with pytest.raises(ValueError, match='no module of Linear has get_layer_depth'):
        build_optim_wrapper(nn.Linear(2, 2), wrapper_cfg())
    frozen = nn.Linear(2, 2).requires_grad_(False)
    with pytest.raises(ValueError, match='no trainable parameter'):
        build_optim_wrapper(frozen, wrapper_cfg(rate=1.0))


@pytest.mark.parametrize('rate', [-0.5, 0, 1.5, float('nan'), float('inf')])
def test_rates_that_are_no_decay_are_refused(rate):
    with pytest.raises(ValueError, match=r'layer_decay_rate must be in \(0, 1\], got'):
        build_optim_wrapper(Model(), wrapper_cfg(rate))


@pytest.mark.parametrize('factor', [-1.0, float('nan'), float('inf')])
def test_factors_that_are_none_are_refused(factor):
    custom = {'head': dict(lr_mult=factor)}
    with pytest.raises(ValueError, match=r"custom_keys\['head'\] must be finite"):
        build_optim_wrapper(Model(), wrapper_cfg(custom_keys=custom))


def test_a_backbone_may_be_the_whole_model():
    model = Model()
    whole = settings_by_name(build_optim_wrapper(model, wrapper_cfg()))
    alone = settings_by_name(build_optim_wrapper(model.backbone, wrapper_cfg()))
    assert len(alone) == len(whole) - 2
    assert all(whole[f'backbone.{name}'] == found for name, found in alone.items())
