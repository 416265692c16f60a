"""Targets, weights and losses of the pose head."""

import numpy as np
import pytest
import torch

from sapiens2_mm.registry import MODELS

pytest.importorskip('mmpose')

from tiny_pose_head import K, head_cfg, packed


@pytest.mark.parametrize(
    'loss',
    [
        None,
        dict(type='sapiens2_mm.KeypointOHKMMSELoss', topk=2, loss_weight=10.0),
        dict(type='mmpose.KeypointMSELoss', use_target_weight=True),
    ],
)
def test_device_targets_equal_the_classic_path(persons, feats, loss):
    torch.manual_seed(0)
    head = MODELS.build(head_cfg(loss=loss))
    classic_head = MODELS.build(head_cfg(loss=loss, target='heatmaps'))
    classic_head.load_state_dict(head.state_dict())
    samples = [packed(*person) for person in persons]
    classic = [packed(*person, classic=True) for person in persons]

    target, weights = head._encode(samples, feats[0])
    expected = torch.stack([sample.gt_fields.heatmaps for sample in classic])
    torch.testing.assert_close(target, expected, atol=2e-6, rtol=0)
    assert torch.equal(
        weights,
        torch.cat([sample.gt_instance_labels.keypoint_weights for sample in classic]),
    )
    losses = head.loss(feats, samples)
    classic_losses = classic_head.loss(feats, classic)
    assert list(losses) == list(classic_losses) == ['loss_kpt', 'acc_pose']
    for name, value in losses.items():
        torch.testing.assert_close(value, classic_losses[name], rtol=1e-6, atol=1e-7)
    grads = [
        torch.autograd.grad(each['loss_kpt'], module.conv_pose.weight)[0]
        for each, module in ((losses, head), (classic_losses, classic_head))
    ]
    torch.testing.assert_close(*grads, rtol=1e-5, atol=1e-8)


def test_keypoints_that_train_nothing(feats):
    """Unlabelled, occluded, outside the crop, and of mmpose's (visible, weight)."""
    keypoints = np.float32([[[0, 0], [20, 20], [24, 32], [48, 10], [-1e-3, 10]]])
    visible = np.float32([[0, 0, 1, 1, 1]])
    head = MODELS.build(head_cfg())
    for seen in (visible, np.stack((visible, np.ones_like(visible)), axis=-1)):
        target, weights = head._encode([packed(keypoints, seen)], feats[0])
        assert weights.tolist() == [[0, 0, 1, 0, 0]]
        assert target.amax((2, 3))[0].tolist()[2] > 0.9
        assert target[0, [0, 1, 3, 4]].abs().max() == 0
    nothing = head.loss((feats[0][:1],), [packed(keypoints, visible * 0)])
    assert nothing['loss_kpt'] == 0
    assert nothing['acc_pose'] == 0


def test_targets_leave_the_host_as_float32(persons, feats, monkeypatch):
    sent = []
    to = torch.Tensor.to
    monkeypatch.setattr(
        torch.Tensor, 'to', lambda self, *a: sent.append(self.dtype) or to(self, *a)
    )
    samples = [packed(k.astype(np.float64), v.astype(np.float64)) for k, v in persons]
    target, weights = MODELS.build(head_cfg())._encode(samples, feats[0])
    assert sent == [torch.float32]
    assert target.dtype == weights.dtype == torch.float32


@pytest.mark.parametrize('target', ['keypoints', 'heatmaps'])
def test_absent_keypoints_learn_to_be_silent(persons, feats, target):
    samples = [packed(*person, classic=target == 'heatmaps') for person in persons]
    official = MODELS.build(head_cfg(target=target))
    silent = MODELS.build(head_cfg(target=target, absent_weight=0.5))
    silent.load_state_dict(official.state_dict())
    expected, losses = (head.loss(feats, samples) for head in (official, silent))
    empty = official(feats)[:, 1].square()  # keypoint 1 is invisible in all samples
    expected_loss = expected['loss_kpt'] + 10 * 0.5 * empty.mean() / K
    torch.testing.assert_close(losses['loss_kpt'], expected_loss)
    assert losses['acc_pose'] == expected['acc_pose']


def test_groups_of_the_table_can_weigh_more(persons, feats, table5, log):
    samples = [packed(*person) for person in persons]
    official = MODELS.build(head_cfg())
    weighted = MODELS.build(
        head_cfg(metainfo=table5, group_weights=dict(head=3.0, paw=2.0))
    )
    assert "group_weights for ['paw'] change nothing" in log.text
    assert weighted.state_dict().keys() == official.state_dict().keys()
    weighted.load_state_dict(official.state_dict())
    expected, losses = (head.loss(feats, samples) for head in (official, weighted))
    target, weights = official._encode(samples, official(feats))
    error = ((official(feats) - target).square().mean((2, 3)) * weights)[:, :3]
    expected_loss = expected['loss_kpt'] + 10 * 2 * error.mean() * 3 / K
    torch.testing.assert_close(losses['loss_kpt'], expected_loss)
    assert losses['acc_pose'] == expected['acc_pose']


def test_group_weights_use_our_table_for_308_keypoints(log):
    cfg = head_cfg(group_weights=dict(face=0.5, foot=2.0))
    weights = MODELS.build(dict(cfg, out_channels=308)).keypoint_weights
    assert weights.sum() == 308 - 0.5 * 238 + 6
    assert weights[15:21].tolist() == [2.0] * 6  # the toes and heels
    assert 'change nothing' not in log.text
    # An own keypoint set may inherit the config of another.
    assert MODELS.build(cfg).keypoint_weights is None
    assert 'change nothing' in log.text


def test_accuracy_can_be_switched_off(persons, feats):
    samples = [packed(*person) for person in persons]
    losses = MODELS.build(head_cfg()).loss(feats, samples, dict(compute_acc=False))
    assert list(losses) == ['loss_kpt']


def test_loss_is_float32_under_autocast(persons, feats):
    torch.manual_seed(0)
    head = MODELS.build(head_cfg())
    samples = [packed(*person) for person in persons]
    with torch.autocast('cpu', dtype=torch.bfloat16):
        assert head(feats).dtype == torch.bfloat16
        losses = head.loss(feats, samples)
    assert losses['loss_kpt'].dtype == torch.float32
    losses['loss_kpt'].backward()
    assert all(
        p.grad is not None and p.grad.isfinite().all() for p in head.parameters()
    )
    torch.testing.assert_close(
        losses['loss_kpt'], head.loss(feats, samples)['loss_kpt'], rtol=0.02, atol=0
    )
