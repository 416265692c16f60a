"""The backbone: reference numbers, outputs, options and their errors."""

import copy

import pytest
import torch
from safetensors.torch import load_file

from sapiens2_mm.models import Sapiens2

# Two blocks of the middle share keys and values.
REFERENCE_ARCH = dict(
    embed_dims=64,
    num_layers=18,
    num_heads=4,
    feedforward_channels=128,
    num_tokenizer_layers=2,
)
TINY = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64)


def tiny(**options):
    torch.manual_seed(0)
    options.setdefault('img_size', (64, 48))
    model = Sapiens2(TINY, **options)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.2)
    return model.eval()


@pytest.fixture(scope='module')
def reference(data_dir):
    bf16 = load_file(data_dir / 'backbone_1k_rope_bf16.safetensors')
    fp32 = load_file(data_dir / 'backbone_1k_rope_fp32.safetensors')
    images = {k: v for k, v in bf16.items() if k.startswith('input')}
    head = 'state_dict.'
    weights = {k[len(head) :]: v for k, v in bf16.items() if k.startswith(head)}
    return weights, {'bf16': bf16, 'fp32': {**fp32, **images}}


def reference_model(weights, rope_dtype='bf16', **options):
    model = Sapiens2(
        REFERENCE_ARCH, img_size=(128, 96), rope_dtype=rope_dtype, **options
    )
    if rope_dtype == 'fp32':  # the file holds the periods rounded to bf16
        periods = {'rope_embed.periods': model.rope_embed.periods}
        weights = {**weights, **periods}
    model.load_state_dict(weights)
    return model.eval()


# The numbers come from a CPU with AVX-512. One that adds in another order flips some of
# the roundings to bf16 in the rotation, by 2 ** -8 of a value each.
ATOL = 1e-5 if torch.backends.cpu.get_cpu_capability() == 'AVX512' else 1e-2


def assert_equal(actual, expected, atol=ATOL):
    torch.testing.assert_close(actual, expected, rtol=0, atol=atol)


@pytest.mark.parametrize('rope_dtype', ['bf16', 'fp32'])
@torch.no_grad()
def test_reference_numbers(reference, rope_dtype):
    weights, numbers = reference
    numbers = numbers[rope_dtype]
    atol = ATOL if rope_dtype == 'bf16' else min(ATOL, 2e-5)
    model = reference_model(weights, rope_dtype)
    assert_equal(model(numbers['input'])[0], numbers['raw'], atol)
    assert_equal(model(numbers['input_other_size'])[0], numbers['raw_other_size'], atol)
    model = reference_model(weights, rope_dtype, out_type='cls_token')
    assert_equal(model(numbers['input'])[0], numbers['cls_token'], atol)
    model = reference_model(
        weights, rope_dtype, out_type='featmap', out_indices=(3, 9, 17)
    )
    early, middle, last = model(numbers['input'])
    assert_equal(early, numbers['featmap_layer3'], atol)
    assert_equal(middle, numbers['featmap_layer9'], atol)
    assert_equal(last, numbers['featmap'], atol)
    assert last.is_contiguous()


def test_reference_numbers_with_gradients(reference):
    weights, numbers = reference
    out = reference_model(weights).train()(numbers['bf16']['input'])
    assert_equal(out[0].detach(), numbers['bf16']['raw'])


@torch.no_grad()
def test_casting_to_float_and_averaging_keep_the_reference_numbers(reference, tmp_path):
    from mmengine.model import ExponentialMovingAverage

    weights, numbers = reference
    image, expected = numbers['bf16']['input'], numbers['bf16']['raw']
    model = reference_model(weights)
    assert_equal(copy.deepcopy(model).float()(image)[0], expected)
    assert_equal(copy.deepcopy(model).double().float()(image)[0], expected)
    average = ExponentialMovingAverage(model, momentum=0.1, update_buffers=True)
    average.update_parameters(model)
    average.update_parameters(model)
    assert_equal(average(image)[0], expected)
    torch.save(model.state_dict(), tmp_path / 'model.pth')
    loaded = reference_model(torch.load(tmp_path / 'model.pth'))
    assert_equal(loaded(image)[0], expected)
    # In bf16 only the noise of the other layers remains, the table is the same.
    half = copy.deepcopy(model).bfloat16()
    assert torch.equal(
        half.rope_embed((8, 6))[1].float(), model.rope_embed((8, 6))[1].float()
    )
    out = half(image.bfloat16())[0]
    assert out.dtype == torch.bfloat16
    assert (out.float() - expected).norm() / expected.norm() < 0.03


@torch.no_grad()
def test_reference_numbers_4k(data_dir):
    model = Sapiens2(
        REFERENCE_ARCH, img_size=(512, 384), use_tokenizer=True, out_type='featmap'
    ).eval()
    model.load_state_dict(load_file(data_dir / 'backbone_4k_weights.safetensors'))
    numbers = load_file(data_dir / 'backbone_4k.safetensors')
    tokens, grid = model.tokenizer(*model.patch_embed(numbers['input']))
    assert grid == (8, 6)
    # Values reach 118, where float32 steps are 8e-6 and kernels differ by some.
    atol = max(ATOL, 1e-4)
    assert_equal(tokens, numbers['tokenizer_out'], atol)
    assert_equal(model(numbers['input'])[0], numbers['featmap'], atol)


@torch.no_grad()
def test_equals_transformers():
    transformers = pytest.importorskip('transformers')
    torch.manual_seed(0)
    model = Sapiens2(REFERENCE_ARCH, img_size=(128, 96), rope_dtype='fp32').eval()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.1)
    config = transformers.Sapiens2Config(
        hidden_size=64,
        num_hidden_layers=18,
        num_attention_heads=4,
        num_key_value_heads_per_layer=[b.attn.num_kv_heads for b in model.blocks],
        intermediate_size=128,
        image_size=[128, 96],
    )
    # It reads the official names, which are ours.
    theirs, info = transformers.Sapiens2Model.from_pretrained(
        None, config=config, state_dict=model.state_dict(), output_loading_info=True
    )
    assert not info['missing_keys'] and not info['unexpected_keys']
    for size in ((128, 96), (64, 160)):
        image = torch.randn(2, 3, *size)
        expected = theirs.eval()(image).last_hidden_state
        assert expected.abs().max() > 1e-2
        torch.testing.assert_close(model(image)[0], expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ('arch', 'options', 'num_params', 'num_entries'),
    [
        ('sapiens2_0.1b', {}, 113_993_472, 210),
        ('Sapiens2_0.4B', {}, 395_450_368, 414),
        ('sapiens2_0.8b', {}, 814_283_520, 550),
        ('SAPIENS2_1B', {}, 1_455_474_176, 686),
        ('sapiens2_5b', {}, 5_066_902_976, 958),
        (
            'sapiens2_1b',
            dict(img_size=(4096, 3072), use_tokenizer=True),
            1_606_588_928,
            686 + 2 + 4 * 14,
        ),
    ],
)
def test_sizes(arch, options, num_params, num_entries):
    with torch.device('meta'):
        model = Sapiens2(arch, **options)
    assert sum(p.numel() for p in model.parameters()) == num_params
    assert len(model.state_dict()) == num_entries
    half = [b.attn.num_kv_heads * 2 == b.attn.num_heads for b in model.blocks]
    last = model.num_layers - 8
    assert half == [8 <= index < last for index in range(model.num_layers)]


@torch.no_grad()
def test_out_indices_and_types():
    image = torch.randn(2, 3, 64, 48)
    model = tiny(out_indices=(0, 1, 2, 3))
    outs = model(image)
    assert [o.shape for o in outs] == [(2, 1 + 8 + 12, 32)] * 4
    # Only the last block's output is normalized.
    tokens, rope, grid = model.embed(image)
    assert grid == (4, 3)
    for out, block in zip(outs[:3], model.blocks, strict=False):
        tokens = block(tokens, rope)
        assert torch.equal(out, tokens)
    torch.testing.assert_close(outs[3], model.ln1(model.blocks[3](tokens, rope)))

    for indices, expected in (
        (-1, [3]),
        ((-1,), [3]),
        ([0, -1], [0, 3]),
        ([-1, 0], [0, 3]),  # block order
        ([3, -1, 1], [1, 3, 3]),
        (-4, [0]),
    ):
        kept = copy.copy(indices)
        for _ in range(2):  # the caller's list serves two models
            part = tiny(out_indices=indices)(image)
            assert len(part) == len(expected)
            for out, index in zip(part, expected, strict=True):
                assert torch.equal(out, outs[index])
        assert indices == kept

    (cls,) = tiny(out_type='cls_token')(image)
    assert torch.equal(cls, outs[3][:, 0])
    (featmap,) = tiny(out_type='featmap')(image)
    assert featmap.shape == (2, 32, 4, 3)
    assert torch.equal(featmap[:, :, 2, 1], outs[3][:, 9 + 2 * 3 + 1])


@pytest.mark.parametrize('last', [0, 2, 3])
def test_what_no_output_needs_is_not_trained(last):
    model = tiny(out_indices=(0, last)).train()
    sum(y.square().mean() for y in model(torch.randn(1, 3, 64, 48))).backward()
    for name, p in model.named_parameters():
        assert p.requires_grad == (p.grad is not None), name
    trained = {n.split('.')[1] for n, p in model.blocks.named_parameters(
        'blocks') if p.requires_grad}  # fmt: skip
    assert trained == {str(n) for n in range(last + 1)}
    assert model.ln1.weight.requires_grad == (last == 3)


def test_no_image():
    for out_type, shape in (('raw', (0, 21, 32)), ('featmap', (0, 32, 4, 3))):
        (out,) = tiny(out_type=out_type)(torch.zeros(0, 3, 64, 48))
        assert out.shape == shape


def test_every_parameter_gets_a_gradient():
    for options in ({}, dict(use_tokenizer=True)):
        model = tiny(out_type='featmap', **options, img_size=(128, 64)).train()
        model(torch.randn(1, 3, 128, 64))[0].square().sum().backward()
        assert all(p.grad is not None for p in model.parameters())
        assert model.storage_tokens.grad.abs().sum() > 0


def test_drop_path_grows_with_depth():
    model = tiny(drop_path_rate=0.3)
    rates = [getattr(b.drop_path, 'drop_prob', 0.0) for b in model.blocks]
    torch.testing.assert_close(rates, [0.0, 0.1, 0.2, 0.3])


@torch.no_grad()
def test_rope_augmentation_only_while_training():
    image = torch.randn(1, 3, 64, 48)
    plain = tiny()(image)[0]
    model = tiny(rope_shift=0.1, rope_jitter=2.0, rope_rescale=2.0)
    assert torch.equal(model(image)[0], plain)
    model.train()
    assert not torch.equal(model(image)[0], model(image)[0])
    with torch.enable_grad():
        model(image)[0].sum().backward()
    model.eval()
    assert torch.equal(model(image)[0], plain)


def test_layer_depth():
    model = tiny(use_tokenizer=True, img_size=(64, 64))
    depths = {n: model.get_layer_depth(n) for n, _ in model.named_parameters()}
    assert {d[1] for d in depths.values()} == {6}
    for name in ('cls_token', 'storage_tokens', 'tokenizer.w_cls'):
        assert depths[name][0] == 0
    assert depths['patch_embed.projection.bias'][0] == 0
    assert depths['tokenizer.blocks.1.ffn.w3.weight'][0] == 0
    assert depths['blocks.0.ln1.weight'][0] == 1
    assert depths['blocks.3.attn.gamma.weight'][0] == 4
    assert depths['ln1.weight'][0] == 5
    assert model.get_layer_depth('backbone.blocks.2.ln2.weight', 'backbone.')[0] == 3
    assert model.get_layer_depth('head.blocks.0.weight', 'backbone.') == (5, 6)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (
            dict(img_size=(1000, 768)),
            r'img_size \(1000, 768\) must be a multiple of patch_size 16; pad or',
        ),
        (dict(img_size=0), r'img_size \(0, 0\)'),
        (dict(img_size=(64.0, 48.0)), r'img_size must be ints, got \(64.0, 48.0\)'),
        (dict(img_size='64'), "img_size must be ints, got '64'"),
        (dict(img_size=(64, 64, 64)), r'img_size \(64, 64, 64\)'),
        (
            dict(img_size=(96, 64), use_tokenizer=True),
            r'\(96, 64\) must be a multiple of patch_size 16 \* window_size 4 = 64',
        ),
        (dict(patch_size=0), 'patch_size must be a positive int, got 0'),
        (dict(use_tokenizer=True, window_size=0), 'window_size must be .*, got 0'),
        (dict(use_tokenizer=True, window_size=2.0), 'window_size .* int, got 2.0'),
        (dict(patch_size=(16, 16)), r'patch_size must .* got \(16, 16\)'),
        (dict(out_indices=4), r'out_indices must be .* ints in \[-4, 3\], got 4'),
        (dict(out_indices=(0, -5)), r'got \(0, -5\)'),
        (dict(out_indices=[]), r'out_indices must be .*, got \[\]'),
        (dict(out_indices='last'), "out_indices must be .*, got 'last'"),
        (dict(out_type='map'), r"one of \['raw', .*got 'map'"),
        (dict(rope_dtype='half'), "rope_dtype must be one of .*'half'"),
        (dict(frozen_stages=None), r'frozen_stages must be an int .*, got None'),
        (dict(frozen_stages=5), r'frozen_stages must be an int in \[-1, 4\]'),
        (dict(frozen_stages=-2), 'got -2'),
        (dict(frozen_stages=True), 'frozen_stages must be an int .*, got True'),
        (dict(drop_path_rate='0.1'), r"a number in \[0, 1\), got '0.1'"),
        (dict(layer_scale_init_value='a'), "value must be a finite number, got 'a'"),
        (dict(layer_scale_init_value=float('nan')), 'a finite number, got nan'),
        (dict(drop_path_rate=1.0), r'must be a number in \[0, 1\), got 1.0'),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        Sapiens2(TINY, **{'img_size': (64, 64), **options})


def test_wrong_input_size():
    model = tiny()
    with pytest.raises(ValueError, match=r'\(65, 48\) must be a multiple of patch_'):
        model(torch.zeros(1, 3, 65, 48))
    with pytest.raises(ValueError, match=r'input size \(48,\) must be a multiple'):
        model(torch.zeros(3, 64, 48))
    model = tiny(use_tokenizer=True, img_size=(64, 64))
    with pytest.raises(ValueError, match=r'\(64, 96\) must be a multiple .* = 64'):
        model(torch.zeros(1, 3, 64, 96))
