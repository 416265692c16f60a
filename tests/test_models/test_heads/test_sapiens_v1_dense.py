"""How the dense heads of the first Sapiens decode, and their dropout."""

import pytest
import torch
from torch.nn import functional as F

from sapiens2_mm.models import SapiensV1DepthHead, SapiensV1NormalHead
from sapiens2_mm.structures import DenseDataSample

KINDS = {SapiensV1NormalHead: 3, SapiensV1DepthHead: 1}


def head_of(kind):
    torch.manual_seed(0)
    head = kind(8, deconv_out_channels=(8, 8, 8), conv_out_channels=(8,))
    head.init_weights()
    return head.eval()


@pytest.mark.parametrize('kind', KINDS)
@torch.no_grad()
def test_maps_are_resized_to_the_input_then_to_the_picture(kind):
    head, feats = head_of(kind), (torch.randn(1, 8, 4, 3),)
    out = head(feats)
    assert out.shape == (1, KINDS[kind], 32, 24)
    expected = out
    for size in ((64, 48), (50, 70)):  # input, picture
        expected = F.interpolate(expected, size, mode='bilinear', align_corners=False)
    if kind is SapiensV1NormalHead:  # last, and never quite of length 1
        length = expected.norm(dim=1, keepdim=True)
        expected = expected / (length + 1e-5)
    sample = DenseDataSample(metainfo=dict(img_shape=(64, 48), ori_shape=(50, 70)))
    (sample,) = head.predict(feats, [sample])
    actual = sample.get(f'pred_{head.field}')
    torch.testing.assert_close(actual, expected[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize('kind', KINDS)
def test_channels_are_dropped_in_training_alone(kind):
    head, feats = head_of(kind), (torch.randn(1, 8, 4, 3),)
    head.dropout.p = 0.5
    assert torch.equal(head(feats), head(feats))
    head.train()
    assert not torch.equal(head(feats), head(feats))


def test_deconvolutions_begin_as_the_convolutions():
    head = SapiensV1NormalHead(64, deconv_out_channels=(64,), conv_out_channels=())
    head.init_weights()
    weight = head.deconv_layers[0].weight
    # Kaiming normal: fan out of a transposed convolution is its input, 64 * 16
    assert weight.std().item() == pytest.approx((2 / (64 * 16)) ** 0.5, rel=0.05)
