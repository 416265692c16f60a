"""The backbone of the first Sapiens: reference numbers, and what loading adapts."""

import pytest
import torch
from safetensors.torch import load_file

pytest.importorskip('mmpretrain')

from sapiens2_mm.engine.parallelize import recompute
from sapiens2_mm.models import SapiensV1

ARCH = dict(embed_dims=64, num_layers=8, num_heads=4, feedforward_channels=256)
TINY = dict(embed_dims=32, num_layers=3, num_heads=2, feedforward_channels=64)


@pytest.fixture(scope='module')
def reference(data_dir):
    file = load_file(data_dir / 'backbone_v1.safetensors')
    head = 'state_dict.'
    weights = {k[len(head) :]: v for k, v in file.items() if k.startswith(head)}
    return weights, file


def loaded(weights, **options):
    model = SapiensV1(ARCH, **options)
    model.load_state_dict(dict(weights))  # strict
    return model.eval()


def assert_equal(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_pretrained_form(reference):
    weights, file = reference
    model = loaded(weights, img_size=128, with_cls_token=True, out_type='raw')
    assert_equal(model(file['input'])[0], file['raw'])
    for name in ('other_size', 'not_multiple'):
        assert_equal(model(file[f'input_{name}'])[0], file[f'raw_{name}'])
    model.out_type = 'cls_token'
    assert_equal(model(file['input'])[0], file['cls_token'])
    model.out_type, model.out_indices = 'featmap', [2, 5, 7]
    for index, out in zip((2, 5, 7), model(file['input']), strict=True):
        assert_equal(out, file[f'featmap_layer{index}'])


@pytest.mark.parametrize('padding, name', [('corner', 'nopad'), (2, 'pad2')])
@torch.no_grad()
def test_task_form(padding, name, reference):
    weights, file = reference
    model = loaded(weights, img_size=(128, 96), patch_padding=padding)
    assert_equal(model.pos_embed, file['task_pos_embed'])
    assert_equal(model(file['task_input'])[0], file[f'task_featmap_{name}'])
    for size in ('other_size', 'not_multiple'):
        out = model(file[f'input_{size}'])[0]
        assert_equal(out, file[f'task_featmap_{name}_{size}'])


def test_positions_of_a_4_3_grid_are_resized(reference):
    weights, file = reference
    weights = {k: v for k, v in weights.items() if k != 'cls_token'}
    weights['pos_embed'] = file['task_pos_embed']
    model = loaded(weights, img_size=(256, 192))
    assert_equal(model.pos_embed, file['task_pos_embed_256x192'])


@pytest.mark.parametrize(
    'rows, options', [(47, {}), (48, dict(with_cls_token=True, img_size=(128, 96)))]
)
def test_positions_of_an_unknown_grid_are_refused(rows, options, reference):
    weights = {**reference[0], 'pos_embed': torch.zeros(1, rows, 64)}
    with pytest.raises(ValueError, match=f'has {rows} rows; expected a square or 4:3'):
        loaded(weights, **{'img_size': (64, 48), **options})


def test_unknown_size_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'sapiens_3b' is none of .*'sapiens_2b'"):
        SapiensV1('sapiens_3b')


def test_subset_of_patches_equals_a_mask_in_attention():
    """Patches that are dropped reach nothing; the others keep their position."""
    torch.manual_seed(0)
    model = SapiensV1(TINY, img_size=(64, 48), with_cls_token=True, out_type='raw')
    model.init_weights()
    image, ids = torch.randn(2, 3, 64, 48), torch.tensor([[0, 5, 7], [1, 2, 11]])
    tokens, _, grid = model.embed(image, ids)
    whole, _, _ = model.embed(image)
    assert grid == (4, 3)
    assert torch.equal(tokens[:, 0], whole[:, 0])
    assert torch.equal(tokens[1, 1:], whole[1, 1:][ids[1]])
    out = model.encode(tokens)[0].pow(3).sum()
    (gradient,) = torch.autograd.grad(out, model.pos_embed)
    used = gradient.abs().sum(-1)[0] > 0
    assert used.nonzero().flatten().tolist() == [0, 1, 2, 3, 6, 8, 12]


def test_fixed_positions_are_not_trained():
    model = SapiensV1(TINY, img_size=64, with_cls_token=True, fixed_positions=True)
    model.init_weights()
    assert not model.pos_embed.requires_grad
    assert not model.pos_embed[0, 0].any()
    # sine of the column after sine and cosine of the row: 1 radian in column 1
    assert model.pos_embed[0, 2, 16].item() == pytest.approx(0.841471)
    assert model.cls_token.std() > 0.01


def test_modes_chain_and_frozen_blocks_stay_in_evaluation():
    model = SapiensV1(TINY, img_size=64, frozen_stages=2, drop_path_rate=0.5).train()
    assert [layer.training for layer in model.layers] == [False, False, True]
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    trained = {name.split('.')[0] for name in names}
    assert trained == {'layers', 'ln1'}
    assert not model.eval().training


def test_recomputation_changes_no_gradient():
    gradients = []
    for mode in ('none', 'selective', 'full'):
        torch.manual_seed(0)
        model = SapiensV1(TINY, img_size=(64, 48))
        recompute(model, mode)
        model.init_weights()
        model(torch.ones(1, 3, 64, 48))[0].square().sum().backward()
        gradients.append(model.layers[0].attn.qkv.weight.grad)
    assert all(torch.equal(gradients[0], other) for other in gradients[1:])
