"""Factors of target heatmaps, and losses and accuracy that need no more."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from sapiens2_mm.models.codecs import heatmap_maximum, heatmap_pck
from sapiens2_mm.models.codecs.udp_heatmap import separable_udp_heatmaps
from sapiens2_mm.models.losses.pose import keypoint_mse, keypoint_ohkm_mse

INPUT, HEATMAP = (96, 128), (24, 32)  # width, height


def make_targets(sigma, count=100):
    """Keypoints in the input, at its borders, beyond them, invisible and unknown."""
    generator = torch.Generator().manual_seed(0)
    keypoints = torch.rand(2, count, 2, generator=generator) * 248 - 60
    keypoints[0, 0] = torch.nan
    visible = (torch.rand(2, count, generator=generator) > 0.1).float()
    return separable_udp_heatmaps(keypoints, visible, INPUT, HEATMAP, sigma)


@pytest.mark.parametrize('sigma', [1, 1.5, 2, 6])
def test_all_that_is_not_zero_lies_in_the_rows(sigma):
    target, _ = make_targets(sigma)
    dense = target.dense()
    assert target.shape == dense.shape
    index = target.rows[..., None].expand(-1, -1, -1, HEATMAP[0])
    assert torch.equal(dense.gather(2, index), target.strips())
    assert dense.scatter(2, index, 0.0).abs().max() == 0
    assert (target.rows.diff(dim=-1) == 1).all()
    assert 0 <= target.rows.min() <= target.rows.max() < HEATMAP[1]
    assert (dense.amax((2, 3)) > 0.5).any()


def test_maximum_is_that_of_the_dense_heatmaps():
    target, _ = make_targets(2, count=1000)
    for ours, expected in zip(
        target.maximum(), heatmap_maximum(target.dense()), strict=True
    ):
        assert torch.equal(ours, expected)


def test_accuracy_is_that_of_the_dense_heatmaps():
    target, weights = make_targets(2)
    torch.manual_seed(0)
    pred = target.dense().roll(1, 3) + 0.3 * torch.rand(2, 100, 32, 24)
    accuracy = heatmap_pck(pred, target, weights)
    assert accuracy == heatmap_pck(pred, target.dense(), weights)
    assert 0 < accuracy < 1


@pytest.mark.parametrize('layout', [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize('sigma', [1.5, 6])
@pytest.mark.parametrize('loss', [keypoint_mse, keypoint_ohkm_mse])
def test_loss_and_gradient_equal_the_dense_ones(loss, sigma, layout):
    target, weights = make_targets(sigma)
    dense = target.dense()
    torch.manual_seed(0)
    pred = dense + 0.1 * torch.randn(dense.shape)
    pred = pred.to(memory_format=layout).requires_grad_()
    value, expected = (loss(pred, each, weights) for each in (target, dense))
    torch.testing.assert_close(value, expected, rtol=1e-6, atol=0)
    (grad,) = torch.autograd.grad(value, pred)
    assert torch.equal(grad, torch.autograd.grad(expected, pred)[0])
    if loss is keypoint_mse:
        exact = weights.double()[..., None, None] * (pred.double() - dense.double())
        exact = 2 * exact / pred.numel()
        assert (grad - exact).abs().max() <= 3e-7 * exact.abs().max()


def test_value_keeps_its_digits_where_the_prediction_is_almost_right():
    target, weights = make_targets(6)
    dense = target.dense()
    torch.manual_seed(0)
    pred = dense + 1e-4 * torch.randn(dense.shape)
    exact = (pred.double() - dense.double()).square().mean((2, 3)) * weights
    torch.testing.assert_close(
        keypoint_mse(pred, target, weights).double(), exact.mean(), rtol=1e-6, atol=0
    )


class NewBuffers(TorchDispatchMode):
    """Counts the results of at least ``size`` values that lie in a new memory."""

    def __init__(self, size):
        super().__init__()
        self.size = size
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        old = {x.data_ptr() for x in args if isinstance(x, torch.Tensor)}
        result = function(*args, **(kwargs or {}))
        is_large = isinstance(result, torch.Tensor) and result.numel() >= self.size
        if is_large and result.data_ptr() not in old:
            self.names.append(str(function))
        return result


def test_only_the_gradient_is_of_the_heatmaps_size():
    target, weights = make_targets(1)
    pred = torch.randn(target.shape, requires_grad=True)
    with NewBuffers(pred.numel()) as buffers:
        loss = keypoint_mse(pred, target, weights)
        heatmap_pck(pred, target, weights)
        assert buffers.names == []
        loss.backward()
    assert len(buffers.names) == 1


def test_sizes_that_differ_are_an_error():
    target, weights = make_targets(2)
    with pytest.raises(ValueError, match=r'\(2, 100, 24, 32\), \(2, 100, 32, 24\)'):
        keypoint_mse(torch.zeros(2, 100, 24, 32), target, weights)
