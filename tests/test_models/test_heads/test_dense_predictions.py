"""What the heads of dense tasks predict."""

import pytest
import torch
import torch.nn.functional as F
from tiny_dense_heads import HEADS, tiny_head

from sapiens2_mm.models import (
    AlbedoHead,
    MattingHead,
    NormalHead,
    PointmapHead,
)
from sapiens2_mm.models.heads.dense_head import crop_padding
from sapiens2_mm.models.heads.pointmap_head import smooth
from sapiens2_mm.structures import DenseDataSample


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


def test_normals_are_those_of_normalize():
    torch.manual_seed(0)
    values = torch.randn(2, 3, 9, 7) * 10 ** torch.linspace(-9, 9, 7)
    expected = F.normalize(values, dim=1, eps=1e-8)
    found = tiny_head(NormalHead).activation(values)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


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
    # one pass: 1 / (1 + 2 exp(-1 / 1.28)) squared at the center
    center = (1 / (1 + 2 * torch.exp(torch.tensor(-1 / 1.28)))) ** 2
    once = smooth(spike, num_passes=1)[0, 0, 10, 10].item()
    assert once == pytest.approx(center.item(), rel=1e-5)


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
