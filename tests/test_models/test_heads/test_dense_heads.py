"""Heads of normals, pointmaps, albedo, depth and mattes."""

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

from sapiens2_mm.models import (
    AlbedoHead,
    DepthHead,
    MattingHead,
    NormalHead,
    PointmapHead,
)
from sapiens2_mm.models.heads.dense_head import crop_padding, stack_targets
from sapiens2_mm.models.heads.pointmap_head import mean_depth, smooth
from sapiens2_mm.structures import DenseDataSample

REFERENCE = dict(
    in_channels=64,
    upsample_channels=(32, 16, 16, 8),
    conv_out_channels=(16, 8),
    conv_kernel_sizes=(3, 3),
)
TINY = dict(
    in_channels=8,
    upsample_channels=(8, 8),
    conv_out_channels=(4,),
    conv_kernel_sizes=(3,),
)
TINY_SCALE = dict(scale_conv_out_channels=(8,), scale_hidden_channels=(4,))
HEADS = [NormalHead, AlbedoHead, DepthHead, MattingHead, PointmapHead]


def tiny_head(cls, feature_size=(4, 3), **kwargs):
    torch.manual_seed(0)
    if cls is PointmapHead:
        kwargs = dict(feature_size=feature_size, **TINY_SCALE, **kwargs)
    head = cls(**TINY, **kwargs)
    head.init_weights()
    return head.eval()


def load_reference(head, data_dir, name):
    tensors = load_file(data_dir / f'head_{name}.safetensors')
    prefix = 'state_dict.'
    weights = {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}
    head.load_state_dict(weights)  # strict: the official names are ours
    return tensors


@pytest.mark.parametrize('cls, name', [(NormalHead, 'normal'), (AlbedoHead, 'albedo')])
def test_output_equals_the_reference(cls, name, data_dir):
    head = cls(**REFERENCE)
    tensors = load_reference(head, data_dir, name)
    torch.testing.assert_close(
        head((tensors['feat'],)), tensors['out'], rtol=1e-5, atol=1e-5
    )


def test_pointmap_equals_the_reference(data_dir):
    head = PointmapHead(
        **REFERENCE,
        feature_size=(16, 16),
        scale_conv_out_channels=(32, 16, 8),
        scale_hidden_channels=(16, 8),
    )
    tensors = load_reference(head, data_dir, 'pointmap')
    pointmap, scale = head((tensors['feat'],))
    torch.testing.assert_close(pointmap, tensors['pointmap'], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(scale, tensors['scale'], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    'cls, in_channels, upsample, convs, millions',
    [
        (NormalHead, 1536, (768, 512, 256, 128), (64, 32, 16), 83.86),
        (NormalHead, 2432, (1536, 768, 512, 256), (128, 64, 32), 249.46),
        (AlbedoHead, 1024, (768, 512, 256, 128), (64, 32, 16), 57.91),
        (PointmapHead, 1280, (1536, 768, 512, 256), (64, 32, 16), 153.08),
        (PointmapHead, 2432, (1536, 768, 768, 768), (128, 64, 32), 281.44),
    ],
)
def test_number_of_parameters(cls, in_channels, upsample, convs, millions):
    with torch.device('meta'):
        head = cls(
            in_channels=in_channels,
            upsample_channels=upsample,
            conv_out_channels=convs,
            conv_kernel_sizes=(3, 3, 3),
        )
    count = sum(p.numel() for p in head.parameters()) / 1e6
    assert count == pytest.approx(millions, abs=0.005)


@pytest.mark.parametrize('cls', HEADS)
def test_weights_are_kaiming_normal(cls):
    head = tiny_head(cls)
    for name, module in head.named_modules():
        if name == 'conv_depth':  # see the test below
            continue
        if isinstance(module, nn.Conv2d):
            fan = module.weight[0, 0].numel() * module.out_channels
            expected = (2 / fan) ** 0.5
        elif isinstance(module, nn.Linear):
            expected = module.in_features**-0.5
        else:
            continue
        if module.weight.numel() > 200:
            std = module.weight.std().item()
            assert std == pytest.approx(expected, rel=0.2), name
        assert (module.bias == 0).all()


def test_untrained_depth_is_positive_and_learns_everywhere():
    """The loss has no gradient at pixels that are not positive."""
    head = tiny_head(DepthHead, loss_decode=dict(type='sapiens2_mm.SILogLoss'))
    feats = (torch.randn(2, 8, 4, 3),)
    depth = head(feats)
    assert (depth - 0.5).abs().max() < 0.1
    depth.retain_grad()
    target = torch.rand_like(depth) + 0.1
    head.loss_decode[0](depth, target, torch.ones_like(depth, dtype=bool)).backward()
    assert (depth.grad != 0).all()


# ---------------------------------------------------------------- constructor errors


@pytest.mark.parametrize(
    'change, message',
    [
        (dict(upsample_channels=()), 'upsample_channels needs at least one entry'),
        (dict(conv_kernel_sizes=(3, 3)), r'one entry per conv, got \[4\] and \[3, 3\]'),
        (dict(conv_kernel_sizes=(2,)), r'conv_kernel_sizes must be odd, got \[2\]'),
    ],
)
def test_constructor_errors(change, message):
    with pytest.raises(ValueError, match=f'NormalHead: .*{message}'):
        NormalHead(**{**TINY, **change})


@pytest.mark.parametrize('size', [(4, 3), (8, 8), (1, 1)])
def test_pointmap_names_the_smallest_usable_size(size):
    """Three halvings leave one cell, which instance norm would erase."""
    with pytest.raises(ValueError, match=r'\(9, 1\) and \(1, 9\).* 144 pixels'):
        PointmapHead(**TINY, feature_size=size)


@pytest.mark.parametrize('size', [(9, 1), (1, 9), (9, 8), (16, 12)])
def test_pointmap_works_at_the_smallest_sizes(size):
    head = PointmapHead(
        **TINY, feature_size=size, scale_conv_out_channels=(4, 4, 4)
    ).train()
    points, scale = head((torch.randn(2, 8, *size),))
    (points.sum() + scale.sum()).backward()
    assert points.shape == (2, 3, 4 * size[0], 4 * size[1]) and scale.shape == (2, 1)
    assert all(p.grad.isfinite().all() for p in head.parameters())


def test_pointmap_refuses_another_feature_size():
    head = tiny_head(PointmapHead)
    with pytest.raises(ValueError, match=r'built for feature_size \(4, 3\).*\(6, 4\)'):
        head.check_feature_size((6, 4))
    with pytest.raises(ValueError, match=r'decode_head\.feature_size='):
        head((torch.randn(1, 8, 6, 4),))


@pytest.mark.parametrize('cls', [NormalHead, DepthHead, MattingHead])
def test_single_cell_is_refused(cls):
    with pytest.raises(ValueError, match='at least 2 cells, got 1x1'):
        tiny_head(cls).check_feature_size((1, 1))
    tiny_head(AlbedoHead).check_feature_size((1, 1))  # no instance norm


# ---------------------------------------------------------------------------- losses


def sample(size=(16, 12), valid=True, **fields):
    torch.manual_seed(1)
    maps = dict(
        gt_normal=F.normalize(torch.randn(3, *size), dim=0),
        gt_pointmap=torch.rand(3, *size) + 1,
        gt_depth=torch.rand(1, *size),
        gt_albedo=torch.rand(3, *size),
        gt_alpha=torch.rand(1, *size),
        gt_foreground=torch.rand(3, *size),
        gt_foreground_mask=torch.ones(1, *size, dtype=torch.bool),
        gt_mask=torch.full((1, *size), valid),
        gt_scale=torch.tensor([1.5]),
        intrinsics=torch.tensor([[20.0, 0, 6], [0, 20, 8], [0, 0, 1]]),
    )
    result = DenseDataSample(
        metainfo=dict(ori_shape=size, img_shape=size, img_path='a')
    )
    for name, value in {**maps, **fields}.items():
        result.set_field(value, name)
    return result


def losses_of(cls):
    def item(name, **kwargs):
        return dict(type=f'sapiens2_mm.{name}', **kwargs)

    if cls is PointmapHead:
        return dict(
            loss_decode=[
                item('MaskedL1Loss', loss_weight=2.0, max_value=4.0),
                item('MultiscaleL1Loss', max_value=4.0),
                item('ShiftInvariantL1Loss', max_value=4.0),
            ],
            loss_depth=item('SILogLoss'),
            loss_geometry=[item('IntrinsicsLoss'), item('PointmapNormalLoss')],
            loss_scale=item('ScaleL1Loss', loss_weight=4.0),
        )
    if cls is MattingHead:
        return dict(
            loss_decode=[item('MattingL1Loss')], loss_foreground=[item('MattingL1Loss')]
        )
    if cls is DepthHead:
        return dict(loss_decode=item('SILogLoss'))
    return dict(loss_decode=[item('MaskedL1Loss'), item('MaskedGradientLoss')])


@pytest.mark.parametrize('cls', HEADS)
@pytest.mark.parametrize('valid', [True, False])
@pytest.mark.parametrize('size', [(16, 12), (31, 20)])
def test_loss_reaches_every_parameter(cls, valid, size):
    """Also when the target has another size, under autocast, or nothing is valid."""
    head = tiny_head(cls, **losses_of(cls)).train()
    feats = (torch.randn(2, 8, 4, 3),)
    with torch.autocast('cpu', torch.bfloat16, enabled=valid):
        losses = head.loss(feats, [sample(size, valid), sample(size, valid)])
    assert all(value.dtype == torch.float32 for value in losses.values())
    sum(losses.values()).backward()
    for name, parameter in head.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
    if not valid:
        zero = {k for k, v in losses.items() if v == 0}
        assert zero >= set(losses) - {'loss_scale', 'loss_l1_pha', 'loss_l1_fgr'}


def test_losses_of_one_name_are_added():
    single = dict(type='sapiens2_mm.MaskedL1Loss')
    head = tiny_head(NormalHead, loss_decode=single)
    double = tiny_head(NormalHead, loss_decode=[single, single])
    feats = (torch.randn(1, 8, 4, 3),)
    value = head.loss(feats, [sample()])['loss_l1']
    torch.testing.assert_close(double.loss(feats, [sample()])['loss_l1'], 2 * value)


def test_pointmap_losses_see_the_right_units(monkeypatch):
    """Points over mean depth, canonical Z, canonical points and the scale."""
    head = tiny_head(PointmapHead, **losses_of(PointmapHead))
    points = torch.rand(1, 3, 16, 12) + 1
    monkeypatch.setattr(head, 'forward', lambda feats: (points, torch.tensor([[2.0]])))
    target = sample()
    losses = head.loss((None,), [target])
    canonical = 1.5 * target.gt_pointmap[None]
    depth = canonical[:, 2].mean()
    expected_l1 = 2 * (points - canonical).abs().sum(1).mean() / depth
    torch.testing.assert_close(losses['loss_l1'], expected_l1)
    assert losses['loss_scale'] == pytest.approx(4 * 0.5)
    ratio = (canonical[:, 2].log() - points[:, 2].log()).flatten()
    expected = (ratio.square().mean() - 0.5 * ratio.mean() ** 2).sqrt()
    torch.testing.assert_close(losses['loss_silog'], expected)


def test_missing_annotation_is_named():
    bare = DenseDataSample(metainfo=dict(img_path='x/y.jpg'))
    with pytest.raises(ValueError, match=r'gt_normal, which the sample of x/y\.jpg'):
        stack_targets([bare], 'gt_normal', torch.device('cpu'))
    samples = [DenseDataSample(), DenseDataSample()]
    for size, sample_ in zip((4, 5), samples, strict=True):
        sample_.gt_mask = torch.ones(1, size, 3, dtype=torch.bool)
    with pytest.raises(ValueError, match=r'gt_mask of one size, got .*\(1, 5, 3\)'):
        stack_targets(samples, 'gt_mask', torch.device('cpu'))


def test_mean_depth_of_nothing_is_one():
    points = torch.full((2, 3, 4, 4), 3.0)
    mask = torch.zeros(2, 1, 4, 4, dtype=torch.bool)
    mask[0] = True
    assert mean_depth(points, mask).flatten().tolist() == [3.0, 1.0]


# ----------------------------------------------------------------------- predictions


def letterboxed(ori_shape, img_shape, padding):
    meta = dict(ori_shape=ori_shape, img_shape=img_shape, padding=padding)
    return DenseDataSample(metainfo=meta)


def predict_with(head, monkeypatch, output, samples):
    monkeypatch.setattr(head, 'forward', lambda feats: output)
    return head.predict((None,), samples)


def test_crop_padding_takes_the_image_only():
    x = torch.arange(48.0).reshape(1, 8, 6)
    cropped = crop_padding(x, letterboxed((4, 4), (8, 6), (1, 1, 2, 2)))
    assert (cropped[0] == x[:, 2:6, 1:5]).all()


def test_normals_are_unit_length_and_zero_stays_zero(monkeypatch):
    """Alternating directions cancel while resizing; zero vectors stay zero."""
    checker = torch.ones(1, 3, 8, 6)
    checker[..., ::2, ::2] *= -1
    checker[..., 1::2, 1::2] *= -1
    checker[:, 1] = 0.3
    normal = predict_with(
        tiny_head(NormalHead),
        monkeypatch,
        7 * checker,
        [letterboxed((32, 24), (8, 6), (0, 0, 0, 0))],
    )[0].pred_normal
    assert normal.shape == (3, 32, 24) and normal.dtype == torch.float32
    assert (normal.norm(dim=0) - 1).abs().max() < 1e-3
    zero = predict_with(
        tiny_head(NormalHead),
        monkeypatch,
        torch.zeros(1, 3, 8, 6),
        [letterboxed((32, 24), (8, 6), (0, 0, 0, 0))],
    )[0].pred_normal
    assert (zero == 0).all()


def test_metric_points_are_prediction_over_scale(monkeypatch):
    points = torch.rand(2, 3, 8, 6) + 1
    scales = torch.tensor([[2.0], [0.5]])
    samples = [letterboxed((8, 6), (8, 6), (0, 0, 0, 0)) for _ in range(2)]
    head = tiny_head(PointmapHead)
    samples = predict_with(head, monkeypatch, (points, scales), samples)
    torch.testing.assert_close(samples[0].pred_pointmap, points[0] / 2)
    torch.testing.assert_close(samples[1].pred_pointmap, points[1] * 2)
    for sample_, scale in zip(samples, scales, strict=True):
        assert (sample_.pred_depth == sample_.pred_pointmap[2:]).all()
        assert (sample_.pred_scale == scale).all()


def test_a_scale_that_is_not_positive_gives_no_infinity(monkeypatch):
    samples = [letterboxed((8, 6), (8, 6), (0, 0, 0, 0))]
    output = (torch.ones(1, 3, 8, 6), torch.tensor([[-1.0]]))
    samples = predict_with(tiny_head(PointmapHead), monkeypatch, output, samples)
    assert samples[0].pred_pointmap.isfinite().all()


@pytest.mark.parametrize('ori_shape, blurred', [((16, 12), True), ((4, 3), False)])
def test_points_are_smoothed_only_when_enlarged(monkeypatch, ori_shape, blurred):
    points = torch.zeros(1, 3, 8, 6)
    points[..., 4, 3] = 1
    samples = [letterboxed(ori_shape, (8, 6), (0, 0, 0, 0))]
    output = (points, torch.ones(1, 1))
    head = tiny_head(PointmapHead)
    pred = predict_with(head, monkeypatch, output, samples)[0].pred_pointmap
    source = smooth(points) if blurred else points
    expected = F.interpolate(source, size=ori_shape, mode='bilinear')[0]
    torch.testing.assert_close(pred, expected)


def test_smooth_keeps_constants_and_the_mean():
    assert torch.allclose(smooth(torch.ones(1, 3, 5, 5)), torch.ones(1, 3, 5, 5))
    spike = torch.zeros(1, 1, 21, 21)
    spike[..., 10, 10] = 1
    assert smooth(spike).sum() == pytest.approx(1, rel=1e-5)
    # one pass: 1 / (1 + 2 exp(-1 / 1.28)) squared at the centre
    centre = (1 / (1 + 2 * torch.exp(torch.tensor(-1 / 1.28)))) ** 2
    once = smooth(spike, num_passes=1)[0, 0, 10, 10].item()
    assert once == pytest.approx(centre.item(), rel=1e-5)


def test_albedo_and_matte_are_clamped(monkeypatch):
    meta = ((8, 6), (8, 6), (0, 0, 0, 0))
    output = torch.linspace(-1, 2, 3 * 48).reshape(1, 3, 8, 6)
    sample_ = predict_with(
        tiny_head(AlbedoHead), monkeypatch, output, [letterboxed(*meta)]
    )[0]
    torch.testing.assert_close(sample_.pred_albedo, output[0].clamp(0, 1))
    matte = torch.rand(1, 4, 8, 6)
    sample_ = predict_with(
        tiny_head(MattingHead), monkeypatch, matte, [letterboxed(*meta)]
    )[0]
    assert (sample_.pred_foreground == matte[0, :3]).all()
    assert (sample_.pred_alpha == matte[0, 3:]).all()


def test_matting_output_is_a_sigmoid():
    out = tiny_head(MattingHead)((torch.randn(2, 8, 4, 3) * 10,))
    assert out.shape == (2, 4, 16, 12) and out.min() >= 0 and out.max() <= 1


@pytest.mark.parametrize('cls', HEADS)
def test_outside_the_mask_is_zero(cls):
    mask = torch.zeros(1, 20, 15, dtype=torch.bool)
    mask[:, 5:10, 3:9] = True
    target = letterboxed((20, 15), (16, 12), (0, 0, 0, 0))
    target.pred_mask = mask
    out = tiny_head(cls).predict((torch.randn(1, 8, 4, 3),), [target])[0]
    maps = [v for k, v in out.items() if k.startswith('pred_') and v.ndim == 3]
    for values in maps:
        if values.dtype != torch.bool:
            outside = values * ~mask
            assert (outside == 0).all() and (values != 0).any()


@pytest.mark.parametrize('cls', HEADS)
@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_gives_float32_maps(cls, dtype):
    head = tiny_head(cls).to(dtype)
    feats = (torch.randn(1, 8, 4, 3, dtype=dtype),)
    with torch.no_grad():
        out = head.predict(feats, [letterboxed((20, 15), (16, 12), (0, 0, 0, 0))])[0]
    preds = [v for k, v in out.items() if k.startswith('pred_')]
    assert preds and all(v.dtype == torch.float32 for v in preds)
    assert all(v.numpy().shape for v in preds)
