"""Dense heads without a decoder: linear probes."""

import pytest
import torch

from sapiens2_mm.models.heads import AlbedoHead, NormalHead, PointmapHead
from sapiens2_mm.models.losses import MaskedL1Loss
from sapiens2_mm.registry import MODELS
from sapiens2_mm.structures import DenseDataSample


def samples(**fields: torch.Tensor) -> list[DenseDataSample]:
    sample = DenseDataSample(metainfo=dict(ori_shape=(32, 24), img_shape=(32, 24)))
    for name, value in fields.items():
        setattr(sample, name, value)
    return [sample, sample]


@pytest.mark.parametrize(
    ('head', 'field'), [(NormalHead, 'normal'), (AlbedoHead, 'albedo')]
)
def test_one_convolution_and_the_full_heads_losses(head, field):
    torch.manual_seed(0)
    probe = head(8, loss_decode=dict(type='sapiens2_mm.MaskedL1Loss'))
    assert [name for name, _ in probe.named_parameters()] == [
        f'conv_{field}.weight', f'conv_{field}.bias',
    ]  # fmt: skip
    x = torch.randn(2, 8, 8, 6)
    target = torch.rand(3, 32, 24)
    mask = torch.ones(1, 32, 24, dtype=torch.bool)
    losses = probe.loss((x,), samples(**{f'gt_{field}': target, 'gt_mask': mask}))
    conv = getattr(probe, f'conv_{field}')
    pred = torch.nn.functional.interpolate(
        conv(x), (32, 24), mode='bilinear', align_corners=False
    )
    expected = MaskedL1Loss()(
        pred, target.expand(2, -1, -1, -1), mask.expand(2, -1, -1, -1)
    )
    torch.testing.assert_close(losses['loss_l1'], expected)
    predicted = probe.predict((x,), samples())
    assert predicted[0].get(f'pred_{field}').shape == (3, 32, 24)


def test_pointmap_has_a_scale_of_any_size():
    torch.manual_seed(0)
    probe = PointmapHead(8, loss_scale=dict(type='sapiens2_mm.ScaleL1Loss'))
    for size in ((8, 6), (4, 3)):
        points, scale = probe((torch.randn(2, 8, *size),))
        assert points.shape == (2, 3, *size) and scale.shape == (2, 1)
    losses = probe.loss(
        (torch.randn(2, 8, 8, 6),),
        samples(
            gt_pointmap=torch.rand(3, 32, 24) + 1,
            gt_mask=torch.ones(1, 32, 24, dtype=torch.bool),
            gt_scale=torch.ones(1),
            intrinsics=torch.eye(3),
        ),
    )
    sum(losses.values()).backward()
    assert probe.scale.weight.grad is not None


@pytest.mark.parametrize(
    ('name', 'full'),
    [('Normal', NormalHead), ('Albedo', AlbedoHead), ('Pointmap', PointmapHead)],
)
def test_the_probe_name_builds_the_full_class(name, full):
    probe = MODELS.build(dict(type=f'sapiens2_mm.Probe{name}Head', in_channels=8))
    assert type(probe) is full
    probe.check_feature_size((1, 1))  # no instance norm


def test_refining_convs_without_upsampling():
    head = NormalHead(8, conv_out_channels=(4,), conv_kernel_sizes=(3,))
    names = [name.rpartition('.')[0] for name, _ in head.named_parameters()]
    assert names[::2] == ['conv_layers.0', 'conv_normal']
    assert head((torch.randn(1, 8, 5, 4),)).shape == (1, 3, 5, 4)
