"""Filling, saving and loading weights of the backbone."""

import pytest
import torch
from mmengine.runner.checkpoint import load_checkpoint

from sapiens2_mm.models import Sapiens2

TINY = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)


def tiny(**options):
    options.setdefault('img_size', (64, 48))
    return Sapiens2(TINY, **options)


@pytest.fixture
def checkpoint(tmp_path):
    """A file with a backbone under the prefix of a task model."""

    def save(**options):
        torch.manual_seed(1)
        model = tiny(**options)
        model.init_weights()
        state = {f'backbone.{k}': v for k, v in model.state_dict().items()}
        state['head.weight'] = torch.zeros(3)
        path = tmp_path / 'model.pth'
        torch.save({'state_dict': state}, path)
        return str(path), model

    return save


@pytest.mark.parametrize(
    ('options', 'layer_scale'), [({}, 1e-4), (dict(layer_scale_init_value=1.0), 1.0)]
)
def test_init_weights_by_the_published_rule(options, layer_scale):
    torch.manual_seed(0)
    model = Sapiens2(
        dict(embed_dims=256, num_layers=2, num_heads=4, feedforward_channels=256),
        img_size=(64, 64),
        use_tokenizer=True,
        **options,
    )
    for p in model.parameters():
        torch.nn.init.constant_(p, 7.0)
    model.init_weights()
    for name, p in model.named_parameters():
        if name.endswith('bias'):
            assert p.eq(0).all(), name
        elif name.endswith('gamma.weight'):
            assert p.eq(layer_scale).all(), name
        elif p.ndim == 1:
            assert p.eq(1).all(), name
        else:
            assert abs(p.std() - 0.02) < 0.003 and abs(p.mean()) < 0.005, name


def test_init_weights_leaves_pretrained_weights_to_the_file(checkpoint):
    path, saved = checkpoint()
    init_cfg = dict(type='Pretrained', checkpoint=path, prefix='backbone.')
    for cfg in (init_cfg, [init_cfg]):
        # no table depends on the size
        model = tiny(img_size=(128, 96), init_cfg=cfg, layer_scale_init_value=1.0)
        state = torch.get_rng_state()
        model.init_weights()
        assert torch.equal(torch.get_rng_state(), state)  # no random filling
        for key, value in saved.state_dict().items():
            assert torch.equal(model.state_dict()[key], value), key


@torch.no_grad()
def test_meta_build_fills_like_a_plain_build():
    image = torch.randn(1, 3, 64, 48)
    outs = []
    for device in ('cpu', 'meta'):
        with torch.device(device):
            model = tiny()
        model.to_empty(device='cpu')
        torch.manual_seed(0)
        model.init_weights()
        outs.append(model.eval()(image)[0])
    assert torch.equal(*outs)


@torch.no_grad()
@pytest.mark.parametrize('size', [(96, 64), (128, 96)])
def test_weights_serve_other_input_sizes(size):
    saved = tiny()
    saved.init_weights()
    model = tiny(img_size=size)
    keys = model.load_state_dict(saved.state_dict())
    assert not keys.missing_keys and not keys.unexpected_keys
    image = torch.randn(1, 3, *size)
    assert torch.equal(model.eval()(image)[0], saved.eval()(image)[0])


def test_tokenizer_weights_and_option_must_agree(checkpoint):
    path, _ = checkpoint(img_size=(64, 64), use_tokenizer=True)
    init_cfg = dict(type='Pretrained', checkpoint=path, prefix='backbone.')
    message = r'lacks tokenizer\.w_cls, .*set use_tokenizer=True'
    with pytest.raises(ValueError, match=message):
        tiny(init_cfg=init_cfg).init_weights()
    model = torch.nn.ModuleDict({'backbone': tiny()})
    with pytest.raises(
        ValueError, match=r'keys backbone\.tokenizer\..*_tokenizer=True'
    ):
        load_checkpoint(model, path)

    path, _ = checkpoint()
    model = torch.nn.ModuleDict({'backbone': tiny(img_size=64, use_tokenizer=True)})
    message = r'backbone\.tokenizer\.\* .* has use_tokenizer=True; set .*=False'
    with pytest.raises(ValueError, match=message):
        load_checkpoint(model, path)
    with pytest.raises(ValueError, match='set use_tokenizer=False'):
        model['backbone'].load_state_dict(tiny().state_dict(), strict=False)


def test_weights_of_another_patch_size_are_refused(checkpoint):
    path, _ = checkpoint()
    message = r'show patch_size=16, the model has patch_size=8; set patch_size=16'
    model = torch.nn.ModuleDict({'backbone': tiny(patch_size=8)})
    with pytest.raises(ValueError, match=message):
        load_checkpoint(model, path)
    with pytest.raises(ValueError, match=message):
        model['backbone'].load_state_dict(tiny().state_dict(), strict=False)


def test_files_without_a_backbone_are_the_loaders_business():
    model = tiny(img_size=64, use_tokenizer=True)
    keys = model.load_state_dict({'head.weight': torch.zeros(3)}, strict=False)
    assert keys.unexpected_keys == ['head.weight']
    assert len(keys.missing_keys) == len(model.state_dict())
