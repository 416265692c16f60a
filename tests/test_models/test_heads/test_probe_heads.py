import pytest
import torch

from sapiens2_mm.models.heads import (
    ProbeAlbedoHead,
    ProbeNormalHead,
    ProbePointmapHead,
)
from sapiens2_mm.models.losses import MaskedL1Loss
from sapiens2_mm.registry import MODELS
from sapiens2_mm.structures import DenseDataSample


def samples(**fields: torch.Tensor) -> list[DenseDataSample]:
    sample = DenseDataSample(metainfo=dict(ori_shape=(32, 24), img_shape=(32, 24)))
    for name, value in fields.items():
        setattr(sample, name, value)
    return [sample, sample]


@pytest.mark.parametrize(
    ('head', 'field'),
    [(ProbeNormalHead, 'normal'), (ProbeAlbedoHead, 'albedo')],
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
    probe = ProbePointmapHead(8, loss_scale=dict(type='sapiens2_mm.ScaleL1Loss'))
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


def test_probe_neck_by_hand():
    neck = MODELS.build(
        dict(type='sapiens2_mm.ProbeNeck', in_channels=4, out_channels=2)
    )
    neck.init_weights()
    with torch.no_grad():
        neck.conv.weight.zero_()
        neck.conv.bias.copy_(torch.tensor([1.0, -1.0]))
    (out,) = neck((torch.zeros(1, 9, 1, 1), torch.randn(1, 4, 3, 2)))
    assert out.shape == (1, 2, 12, 8)
    expected = torch.nn.functional.gelu(torch.tensor([1.0, -1.0]))
    torch.testing.assert_close(out[0, :, 5, 5], expected)
