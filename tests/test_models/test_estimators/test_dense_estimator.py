import copy

import numpy as np
import pytest
import torch

from sapiens2_mm.models import DenseDataPreprocessor, DenseEstimator, NormalHead
from sapiens2_mm.registry import MODELS
from sapiens2_mm.structures import DenseDataSample

ARCH = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)
TASKS = ['normal', 'pointmap', 'albedo', 'matting', 'depth']


def model_cfg(task='normal', img_size=(64, 48), feature_size=None, **head):
    cfg = dict(
        type='sapiens2_mm.DenseEstimator',
        backbone=dict(
            type='sapiens2_mm.Sapiens2',
            arch=ARCH,
            img_size=img_size,
            out_type='featmap',
        ),
        decode_head=dict(
            type=f'sapiens2_mm.{task.title()}Head',
            in_channels=32,
            upsample_channels=(16, 8, 8, 8),
            conv_out_channels=(8,),
            conv_kernel_sizes=(3,),
            **head,
        ),
    )
    if task == 'pointmap':
        cfg['decode_head'].update(
            feature_size=feature_size or tuple(side // 16 for side in img_size),
            scale_conv_out_channels=(8,),
            scale_hidden_channels=(8,),
        )
    return cfg


def build(task='normal', **kwargs):
    torch.manual_seed(0)
    model = MODELS.build(model_cfg(task, **kwargs))
    model.init_weights()
    return model.eval()


def images(number, size=(64, 48)):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(
        0, 256, (number, 3, *size), dtype=torch.uint8, generator=generator
    )


def test_names_are_the_official_ones():
    names = {name.split('.')[0] for name, _ in build().named_parameters()}
    assert names == {'backbone', 'decode_head'}
    keys = set(build('pointmap').state_dict())
    assert {
        'decode_head.input_conv.0.weight',
        'decode_head.upsample_blocks.3.0.bias',
        'decode_head.conv_layers.0.weight',
        'decode_head.conv_pointmap.weight',
        'decode_head.scale_conv_layers.0.weight',
        'decode_head.scale_final_layer.1.weight',
        'decode_head.scale_final_layer.3.bias',
    } <= keys


@pytest.mark.parametrize('task', TASKS)
def test_modes(task):
    model = build(task)
    inputs = model.data_preprocessor(dict(inputs=list(images(2))))['inputs']
    out = model(inputs)
    out = out[0] if task == 'pointmap' else out
    assert out.shape[0] == 2 and out.shape[2:] == (64, 48)
    samples = model(inputs, mode='predict')
    assert len(samples) == 2
    for sample in samples:
        for name, value in sample.items():
            assert value.dtype == torch.float32 and value.isfinite().all(), name
    with pytest.raises(ValueError, match=r'Head has no loss to train with; set decode'):
        model(inputs, [train_sample()] * 2, mode='loss')
    with pytest.raises(ValueError, match=r'\w+ has .*; .* give data_samples'):
        model(inputs, mode='loss')
    with pytest.raises(ValueError, match="got 'train'"):
        model(inputs, mode='train')


def predict(model, pictures):
    with torch.no_grad():
        return model.test_step(dict(inputs=list(pictures)))


@pytest.mark.parametrize('task', TASKS)
def test_batches_and_repeats_agree(task):
    """The same image again gives the same bits; among others, the same to rounding."""
    model = build(task)
    batch = images(3)
    first, second = (predict(model, batch[:1])[0] for _ in range(2))
    for name, value in first.items():
        assert (value == second.get(name)).all()
    inputs = model.data_preprocessor(dict(inputs=list(batch)))['inputs']
    # a convolution may add up in another order in another batch; how much that shows
    # in float32 depends on the processor
    single = 3e-6 if task in ('pointmap', 'depth') else 1e-5
    for dtype, bound in ((torch.float32, single), (torch.float64, 1e-13)):
        model, inputs = model.to(dtype), inputs.to(dtype)
        with torch.no_grad():
            together = model(inputs)
            alone = [model(inputs[index : index + 1]) for index in range(3)]
        outputs = zip(*alone, strict=True) if task == 'pointmap' else [alone]
        together = together if task == 'pointmap' else [together]
        for one, all_ in zip(outputs, together, strict=True):
            error = (torch.cat(one) - all_).abs().max()
            assert error <= bound * all_.abs().max()


def test_neck_is_used():
    class Neck(torch.nn.Module):
        def forward(self, feats):
            return tuple(2 * feat for feat in feats)

    MODELS.register_module(name='TestDenseNeck', module=Neck)
    torch.manual_seed(0)
    model = MODELS.build(
        model_cfg() | dict(neck=dict(type='sapiens2_mm.TestDenseNeck'))
    )
    assert model.with_neck
    x = torch.randn(1, 3, 64, 48)
    plain = model.backbone(x)[-1]
    torch.testing.assert_close(model.extract_feat(x)[-1], 2 * plain)


# ------------------------------------------------------------------ sizes at build time


@pytest.mark.parametrize('stride', [None, 16])
def test_a_foreign_backbone_is_compared_if_it_tells_its_stride(stride):
    class Plain(torch.nn.Module):
        img_size = (96, 64)

        def forward(self, x):
            return (x,)

    if stride is not None:
        Plain.stride = stride
    MODELS.register_module(name='TestStride', module=Plain, force=True)
    cfg = model_cfg('pointmap', feature_size=(4, 3))
    cfg['backbone'] = dict(type='sapiens2_mm.TestStride')
    if stride is None:
        MODELS.build(cfg)
    else:
        with pytest.raises(
            ValueError, match=r'\(4, 3\), but the backbone makes \(6, 4'
        ):
            MODELS.build(cfg)


def test_pointmap_of_another_size_is_refused_at_build():
    with pytest.raises(ValueError, match=r'\(4, 3\), but the backbone makes \(6, 4\)'):
        MODELS.build(model_cfg('pointmap', img_size=(96, 64), feature_size=(4, 3)))
    model = build('pointmap', img_size=(96, 64))
    points, scale = model(torch.randn(1, 3, 96, 64))
    assert points.shape == (1, 3, 96, 64) and scale.shape == (1, 1)


def test_smallest_size_is_named_at_build():
    cfg = model_cfg('pointmap')
    cfg['decode_head']['scale_conv_out_channels'] = (8, 8, 8)
    with pytest.raises(ValueError, match='144 pixels'):
        MODELS.build(cfg)
    with pytest.raises(ValueError, match='at least 2 cells, got 1x1'):
        MODELS.build(model_cfg('normal', img_size=(16, 16)))


@pytest.mark.parametrize('task', ['normal', 'albedo', 'matting', 'depth'])
def test_weights_fit_other_sizes(task):
    small, large = build(task), build(task, img_size=(128, 96))
    large.load_state_dict(small.state_dict())
    assert large(torch.randn(1, 3, 128, 96)).shape[2:] == (128, 96)


def test_the_4k_tokenizer_is_counted():
    cfg = model_cfg('pointmap', img_size=(256, 192), feature_size=(4, 3))
    cfg['backbone'].update(use_tokenizer=True)
    model = MODELS.build(cfg)
    assert model.decode_head.feature_size == (4, 3)


# ------------------------------------------------------------------------ preprocessor


def test_preprocessor_swaps_then_normalizes():
    image = torch.zeros(3, 2, 2, dtype=torch.uint8)
    image[2] = 255  # red, in BGR order
    out = DenseDataPreprocessor()(dict(inputs=[image]))
    pixel = out['inputs'][0, :, 0, 0]
    expected = [(255 - 123.675) / 58.395, -116.28 / 57.12, -103.53 / 57.375]
    assert pixel.tolist() == pytest.approx(expected, rel=1e-6)
    plain = DenseDataPreprocessor(bgr_to_rgb=False)(dict(inputs=[image]))
    assert plain['inputs'][0, 2, 0, 0] > 2 and out['data_samples'] is None


def test_preprocessor_takes_a_stacked_batch():
    batch = images(2)
    one = DenseDataPreprocessor()(dict(inputs=batch))['inputs']
    other = DenseDataPreprocessor()(dict(inputs=list(batch)))['inputs']
    assert (one == other).all()


def test_preprocessor_refuses_mixed_sizes():
    mixed = [images(1)[0], images(1, (48, 64))[0]]
    with pytest.raises(ValueError, match=r'one size, got .*Letterbox'):
        DenseDataPreprocessor()(dict(inputs=mixed))


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
@pytest.mark.parametrize('task', TASKS)
def test_half_precision_inference(task, dtype):
    """Exact mean and deviation, half weights, float32 results near the full ones."""
    model = build(task)
    full = predict(model, images(1))[0]
    model = copy.deepcopy(model).to(dtype)
    inputs = model.data_preprocessor(dict(inputs=list(images(1))))['inputs']
    assert inputs.dtype == torch.float32
    red = images(1)[0, 2, 0, 0].item()
    assert inputs[0, 0, 0, 0].item() == pytest.approx((red - 123.675) / 58.395, 1e-5)
    half = predict(model, images(1))[0]
    for name, value in half.items():
        assert value.dtype == torch.float32
        assert value.numpy().dtype == np.float32
        if name in ('pred_normal', 'pred_albedo', 'pred_alpha'):
            assert (value - full.get(name)).abs().mean() < 0.15


def test_model_tensors_are_not_float64():
    for task in TASKS:
        for name, value in build(task).state_dict().items():
            assert value.dtype != torch.float64, name


# ---------------------------------------------------------------------------- training


def train_sample(size=(64, 48)):
    torch.manual_seed(0)
    sample = DenseDataSample(metainfo=dict(ori_shape=size, img_shape=size))
    for name in ('gt_normal', 'gt_pointmap', 'gt_albedo', 'gt_foreground'):
        sample.set_field(torch.rand(3, *size) + 0.5, name)
    for name in ('gt_depth', 'gt_alpha'):
        sample.set_field(torch.rand(1, *size), name)
    for name in ('gt_mask', 'gt_foreground_mask'):
        sample.set_field(torch.ones(1, *size, dtype=torch.bool), name)
    sample.gt_scale = torch.tensor([2.0])
    sample.intrinsics = torch.tensor([[50.0, 0, 24], [0, 50, 32], [0, 0, 1]])
    return sample


@pytest.mark.parametrize('task', TASKS)
def test_every_parameter_of_the_shipped_losses_has_a_gradient(task, repo_dir):
    """So that distributed training needs no search for unused parameters."""
    from mmengine.config import Config

    base = Config.fromfile(repo_dir / f'configs/_base_/models/sapiens2_{task}.py').model
    losses = {k: v for k, v in base.decode_head.items() if k.startswith('loss_')}
    model = build(task, **losses).train()
    data = dict(inputs=list(images(2)), data_samples=[train_sample(), train_sample()])
    data = model.data_preprocessor(data, training=True)
    total, logged = model.parse_losses(model(**data, mode='loss'))
    total.backward()
    assert total.isfinite() and len(logged) > 1
    missing = [n for n, p in model.named_parameters() if p.grad is None]
    assert missing == []


def test_a_step_lowers_the_loss():
    model = build('normal', loss_decode=dict(type='sapiens2_mm.NormalCosineLoss'))
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    data = dict(inputs=list(images(1)), data_samples=[train_sample()])
    data = model.data_preprocessor(data, training=True)
    values = []
    for _ in range(20):
        loss = model(**data, mode='loss')['loss_cosine']
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    assert values[-1] < 0.8 * values[0]


def test_plain_construction():
    model = DenseEstimator(
        backbone=model_cfg()['backbone'], decode_head=model_cfg()['decode_head']
    )
    assert isinstance(model.decode_head, NormalHead)
    assert isinstance(model.data_preprocessor, DenseDataPreprocessor)
    assert not model.with_neck
