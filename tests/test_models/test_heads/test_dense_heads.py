"""Heads of normals, pointmaps, albedo, depth and mattes."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tiny_dense_heads import HEADS, TINY, tiny_head
from torch import nn

from sapiens2_mm.datasets.transforms.maps import scaled_camera
from sapiens2_mm.models import (
    AlbedoHead,
    DepthHead,
    MattingHead,
    NormalHead,
    PointmapHead,
)
from sapiens2_mm.models.heads.dense_head import stack_targets
from sapiens2_mm.models.heads.pointmap_head import mean_depth, of_maps
from sapiens2_mm.structures import DenseDataSample

REFERENCE = dict(
    in_channels=64,
    upsample_channels=(32, 16, 16, 8),
    conv_out_channels=(16, 8),
    conv_kernel_sizes=(3, 3),
)


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
        (dict(conv_kernel_sizes=(3, 3)), r'one entry per stage, got \[4\] and \[3, 3'),
        (dict(conv_kernel_sizes=(2,)), 'conv_kernel_sizes must be odd, got 2'),
    ],
)
def test_constructor_errors(change, message):
    with pytest.raises(ValueError, match=message):
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


class Recorder(nn.Module):
    """A loss that keeps what it was called with."""

    loss_name = 'loss_recorded'

    def forward(self, *args):
        self.args = args
        return args[0].sum()


def test_losses_of_half_sized_targets_get_the_camera_of_the_targets():
    head = tiny_head(PointmapHead)
    head.loss_geometry.append(Recorder())
    target = sample()
    target.set_metainfo(dict(img_shape=(32, 24)))
    head.loss((torch.randn(1, 8, 4, 3),), [target])
    pred, points, _, intrinsics, _ = head.loss_geometry[0].args
    assert pred.shape == points.shape == (1, 3, 16, 12)
    expected = scaled_camera(target.intrinsics.numpy(), 0.5, 0.5)
    torch.testing.assert_close(intrinsics[0], torch.from_numpy(expected))


def test_camera_of_smaller_pointmaps_is_that_of_their_pixels():
    camera = np.array([[900.0, 0, 700.2], [0, 950.0, 401.7], [0, 0, 1]])
    intrinsics = torch.tensor(camera)[None]
    sample = DenseDataSample(metainfo=dict(img_shape=(1024, 768)))
    maps = torch.zeros(1, 3, 1024, 768)
    assert of_maps(intrinsics, maps, sample) is intrinsics
    expected = scaled_camera(camera, 0.25, 0.5)
    result = of_maps(intrinsics, maps[..., ::2, ::4], sample)
    torch.testing.assert_close(result[0], torch.tensor(expected))


def test_missing_annotation_is_named():
    bare = DenseDataSample(metainfo=dict(img_path='x/y.jpg'))
    with pytest.raises(ValueError, match=r'gt_normal of one size, which x/y\.jpg'):
        stack_targets([bare], 'gt_normal', torch.device('cpu'))
    whole = DenseDataSample(metainfo=dict(img_path='whole.jpg'))
    whole.gt_normal = torch.zeros(3, 4, 4)
    bare.gt_normal = torch.zeros(3, 4, 2)
    with pytest.raises(ValueError, match=r'one size, which x/y\.jpg .*with_maps=True'):
        stack_targets([whole, bare], 'gt_normal', torch.device('cpu'))


def test_mean_depth_of_nothing_is_one():
    points = torch.full((2, 3, 4, 4), 3.0)
    mask = torch.zeros(2, 1, 4, 4, dtype=torch.bool)
    mask[0] = True
    assert mean_depth(points, mask).flatten().tolist() == [3.0, 1.0]
