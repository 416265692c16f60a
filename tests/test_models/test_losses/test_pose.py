import pytest
import torch
from safetensors.torch import load_file

from sapiens2_mm.models.losses.pose import (
    KeypointMSELoss,
    KeypointOHKMMSELoss,
    keypoint_mse,
    keypoint_ohkm_mse,
)
from sapiens2_mm.registry import MODELS


@pytest.fixture(scope='module')
def reference(data_dir):
    return load_file(data_dir / 'losses_keypoint.safetensors')


@pytest.mark.parametrize(
    'name, loss',
    [
        ('keypoint_mse', KeypointMSELoss()),
        ('keypoint_ohkm_mse_topk64', KeypointOHKMMSELoss(topk=64)),
    ],
)
def test_equals_reference(reference, name, loss):
    pred = reference['in.heatmap_pred'].requires_grad_()
    value = loss(pred, reference['in.heatmap_gt'], reference['in.keypoint_weight'])
    (grad,) = torch.autograd.grad(value, pred)
    torch.testing.assert_close(
        value[None], reference[f'loss.{name}'], rtol=1e-5, atol=0
    )
    expected = reference[f'grad.{name}']
    assert (grad - expected).abs().max() <= 1e-5 * expected.abs().max()


def test_invisible_keypoints_dilute_the_mean():
    pred = torch.zeros(1, 2, 2, 2)
    target = torch.ones(1, 2, 2, 2)
    assert keypoint_mse(pred, target) == 1
    assert keypoint_mse(pred, target, torch.tensor([[1.0, 0.0]])) == 0.5
    assert keypoint_mse(pred, target, torch.zeros(1, 2)) == 0


def test_ohkm_keeps_the_worst_keypoints_of_each_sample():
    pred = torch.tensor([[1.0, 2.0, 3.0], [2.0, 0.0, 1.0]])[..., None, None]
    value = keypoint_ohkm_mse(pred, torch.zeros_like(pred), topk=2)
    assert value == (9 + 4 + 4 + 1) / 4


def test_loss_weight_and_registry():
    pred, target = torch.zeros(1, 2, 2, 2), torch.ones(1, 2, 2, 2)
    mse = MODELS.build(dict(type='sapiens2_mm.KeypointMSELoss', loss_weight=10.0))
    ohkm = MODELS.build(
        dict(type='sapiens2_mm.KeypointOHKMMSELoss', topk=1, loss_weight=3.0)
    )
    assert mse(pred, target) == 10
    assert ohkm(pred, target) == 3


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_predictions_are_compared_in_float32(dtype):
    torch.manual_seed(0)
    pred = torch.randn(2, 3, 8, 8).to(dtype).requires_grad_()
    target = torch.rand(2, 3, 8, 8)
    value = keypoint_mse(pred, target)
    assert value.dtype == torch.float32
    assert value == keypoint_mse(pred.float(), target)
    value.backward()
    assert pred.grad.dtype == dtype


@pytest.mark.parametrize('absent', [0.5, [0.25, 0.5, 1.0]])
def test_absent_keypoints_learn_to_be_silent(absent):
    pred = torch.tensor([[1.0, 2.0, 3.0]])[..., None, None]
    loss = KeypointMSELoss(loss_weight=6.0, absent_weight=absent)
    value = loss(pred, torch.zeros_like(pred), torch.tensor([[2.0, 0.0, 0.0]]))
    expected = 2 + (0.5 * 4 + (0.5 if absent == 0.5 else 1.0) * 9)
    assert value == 6 * expected / 3


def test_errors():
    maps = torch.zeros(2, 3, 4, 4)
    with pytest.raises(ValueError, match=r'\(2, 3, 4, 4\), \(2, 3, 4, 5\)'):
        keypoint_mse(maps, torch.zeros(2, 3, 4, 5))
    with pytest.raises(ValueError, match=r'weights \(B, K\) differ: .*\(3,\)\]'):
        keypoint_mse(maps, maps, torch.ones(3))
    with pytest.raises(ValueError, match='topk must be at least 1, got 0'):
        KeypointOHKMMSELoss(topk=0)
    for wrong in (-1.0, float('nan'), [0.5, float('inf')]):
        with pytest.raises(ValueError, match='absent_weight must be >= 0, got'):
            KeypointMSELoss(absent_weight=wrong)
    with pytest.raises(ValueError, match='absent_weight has 2 numbers for 3 keypoints'):
        KeypointMSELoss(absent_weight=[0.5, 0.5])(maps, maps, torch.ones(2, 3))
    with pytest.raises(ValueError, match='topk 4 must be at most 3, the keypoints'):
        KeypointOHKMMSELoss(topk=4)(maps, maps)


def test_one_buffer_of_the_heatmaps_size_is_kept_for_the_gradient():
    kept = []
    pred, target = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 4, 5)
    weights = torch.rand(2, 3)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.append(tensor.numel()) or tensor, lambda tensor: tensor
    ):
        loss = keypoint_mse(pred.requires_grad_(), target, weights)
    assert sum(size == pred.numel() for size in kept) == 1
    loss.backward()
    expected = 2 * (pred.detach() - target) * weights[..., None, None] / pred.numel()
    torch.testing.assert_close(pred.grad, expected)
