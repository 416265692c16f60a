"""Targets, weights and losses of the pose head."""

import numpy as np
import pytest
import torch

from sapiens2_mm.registry import MODELS

pytest.importorskip('mmpose')

from mmpose.datasets.transforms import KeypointConverter, PackPoseInputs, RandomFlip
from mmpose.models.losses import KeypointMSELoss as MMPoseKeypointMSELoss
from tiny_pose_head import FLIP_INDICES, INPUT, K, head_cfg, packed

from sapiens2_mm.datasets import Sapiens2TopdownAffine
from sapiens2_mm.models.codecs import SeparableHeatmaps, encode_targets
from sapiens2_mm.models.heads import pose_passes
from sapiens2_mm.models.losses import KeypointMSELoss, KeypointOHKMMSELoss


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

    target, weights = encode_targets(samples, head.decoder, 'cpu')
    target = target.dense()
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


class Subclass(KeypointMSELoss):
    """May do anything with its target, so it gets one."""


@pytest.mark.parametrize(
    'loss, dense',
    [
        (KeypointMSELoss(10.0), False),
        (KeypointOHKMMSELoss(2), False),
        (KeypointMSELoss(10.0, absent_weight=0.5), False),
        (Subclass(10.0), True),
        (MMPoseKeypointMSELoss(use_target_weight=True), True),
    ],
)
def test_heatmaps_are_made_only_for_other_losses(
    persons, feats, loss, dense, monkeypatch
):
    made = []
    make = SeparableHeatmaps.dense
    monkeypatch.setattr(
        SeparableHeatmaps, 'dense', lambda self: made.append(self) or make(self)
    )
    head = MODELS.build(head_cfg())
    head.loss_module = loss
    head.loss(feats, [packed(*person) for person in persons])
    assert len(made) == dense


def test_keypoints_that_train_nothing(feats):
    """Unlabeled, occluded, outside the crop, and of mmpose's (visible, weight)."""
    keypoints = np.float32([[[0, 0], [20, 20], [24, 32], [48, 10], [-1e-3, 10]]])
    visible = np.float32([[0, 0, 1, 1, 1]])
    head = MODELS.build(head_cfg())
    for seen in (visible, np.stack((visible, np.ones_like(visible)), axis=-1)):
        target, weights = encode_targets([packed(keypoints, seen)], head.decoder, 'cpu')
        target = target.dense()
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
    target, weights = encode_targets(samples, MODELS.build(head_cfg()).decoder, 'cpu')
    assert sent == [torch.float32]
    assert target.down.dtype == target.across.dtype == torch.float32
    assert target.dense().dtype == weights.dtype == torch.float32


@pytest.mark.parametrize('target', ['keypoints', 'heatmaps'])
def test_absent_keypoints_learn_to_be_silent(persons, feats, target):
    samples = [packed(*person, classic=target == 'heatmaps') for person in persons]
    official = MODELS.build(head_cfg(target=target))
    loss = dict(type='sapiens2_mm.KeypointMSELoss', loss_weight=10.0, absent_weight=0.5)
    silent = MODELS.build(head_cfg(target=target, loss=loss))
    silent.load_state_dict(official.state_dict())
    expected, losses = (head.loss(feats, samples) for head in (official, silent))
    empty = official(feats)[:, 1].square()  # keypoint 1 is invisible in all samples
    expected_loss = expected['loss_kpt'] + 10 * 0.5 * empty.mean() / K
    torch.testing.assert_close(losses['loss_kpt'], expected_loss)
    assert losses['acc_pose'] == expected['acc_pose']


def crop(keypoints, visible, weights, steps=()):
    """A sample of a pipeline that crops the 48x64 picture as it is."""
    results = dict(
        img=np.zeros((64, 48, 3), np.uint8),
        img_shape=(64, 48),
        bbox=np.float32([[0, 0, 47, 63]]),
        bbox_score=np.ones(1, np.float32),
        bbox_center=np.float32([[23.5, 31.5]]),
        bbox_scale=np.float32([[47, 63]]),
        keypoints=keypoints,
        keypoints_visible=visible,
        flip_indices=FLIP_INDICES,
        dataset_keypoint_weights=np.float32(weights),
    )
    for step in (*steps, Sapiens2TopdownAffine(INPUT)):
        results = step(results)
    return PackPoseInputs(pack_transformed=True)(results)['data_samples']


def test_joint_weights_of_the_metainfo_weigh_keypoints(persons, feats):
    head = MODELS.build(head_cfg())
    weights = [3.0, 1.0, 0.5, 1.0, 0.0]
    weighted = [crop(*person, weights) for person in persons]
    uniform = [crop(*person, [1.0] * K) for person in persons]
    target, visible = encode_targets(uniform, head.decoder, 'cpu')
    bare = encode_targets([packed(*person) for person in persons], head.decoder, 'cpu')
    assert torch.equal(visible, bare[1]) and visible.sum() > 5
    expected = visible * torch.tensor(weights)
    assert torch.equal(encode_targets(weighted, head.decoder, 'cpu')[1], expected)
    error = (head(feats) - target.dense()).square().mean((2, 3))
    loss = head.loss(feats, weighted)['loss_kpt']
    torch.testing.assert_close(loss, 10 * (error * expected).mean())


def test_joint_weights_stay_with_the_keypoint_in_a_flip(persons):
    keypoints, visible = persons[0]
    flip = RandomFlip(prob=1.0, direction='horizontal')
    weights = [1.0, 2.0, 3.0, 4.0, 5.0]
    sample = crop(keypoints, visible, weights, [flip])
    expected = visible[0][FLIP_INDICES] * np.float32(weights)
    assert sample.gt_instance_labels.keypoint_weights[0].tolist() == expected.tolist()


def test_another_number_of_keypoints_after_a_converter(persons, feats):
    keypoints, visible = persons[0]
    convert = KeypointConverter(num_keypoints=3, mapping=[(0, 0), (2, 1), (4, 2)])
    sample = crop(keypoints, visible, [1.0] * K, [convert])
    head = MODELS.build(head_cfg(out_channels=3))
    three, five = (
        encode_targets([each], head.decoder, 'cpu')
        for each in (sample, crop(keypoints, visible, [1.0] * K))
    )
    for got, full in ((three[0].dense(), five[0].dense()), (three[1], five[1])):
        torch.testing.assert_close(got, full[:, [0, 2, 4]], atol=2e-6, rtol=0)
        assert got.dtype == torch.float32
    assert head.loss((feats[0][:1],), [sample])['loss_kpt'] > 0
    with pytest.raises(ValueError, match='5 joint_weights do not fit the 3 keypoints'):
        crop(keypoints, visible, [1.0, 2.0, 3.0, 4.0, 5.0], [convert])


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


@pytest.mark.parametrize(
    'loss', [None, dict(type='sapiens2_mm.KeypointOHKMMSELoss', topk=2)]
)
def test_few_maps_at_a_time_give_the_same_loss(persons, feats, loss, monkeypatch):
    torch.manual_seed(9)  # of these weights acc_pose is not 0
    head = MODELS.build(head_cfg(loss=loss))
    weights = [3.0, 1.0, 0.5, 1.0, 0.0]
    samples = [crop(*person, weights) for person in persons]
    made = record_maps(monkeypatch)

    def step():
        head.zero_grad()
        map_ = feats[0].clone().requires_grad_()
        losses = head.loss((map_,), samples)
        losses['loss_kpt'].backward()
        grads = [map_.grad, *(p.grad.clone() for p in head.parameters())]
        return {name: value.detach() for name, value in losses.items()}, grads

    expected, expected_grads = step()
    assert made == []
    head.passes = [slice(0, 2), slice(2, 4), slice(4, 6)]
    losses, grads = step()
    assert made == [2, 2, 1, 1, 2, 2]  # once more for the gradient
    assert losses['acc_pose'] == expected['acc_pose'] > 0
    torch.testing.assert_close(losses['loss_kpt'], expected['loss_kpt'])
    for one, other in zip(grads, expected_grads, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize('flip_test', [False, True])
def test_few_maps_at_a_time_give_the_same_keypoints(
    persons, feats, flip_test, monkeypatch
):
    torch.manual_seed(0)
    head = MODELS.build(head_cfg()).eval()
    samples = [packed(*person) for person in persons]
    maps = [feats, (feats[0].flip(-1),)] if flip_test else feats
    test_cfg = dict(flip_test=flip_test)
    expected = head.predict(maps, samples, test_cfg)
    head.passes = [slice(0, 2), slice(2, 4), slice(4, 6)]
    made = record_maps(monkeypatch)
    results = head.predict(maps, samples, test_cfg)
    assert max(made) == 2 and sum(made) == K * (1 + flip_test)
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(one.keypoints, other.keypoints, 2e-3, 1e-2)
        np.testing.assert_allclose(one.keypoint_scores, other.keypoint_scores, 1e-5)
    _, fields = head.predict(maps, samples, dict(test_cfg, output_heatmaps=True))
    assert fields[0].heatmaps.shape[0] == K


def record_maps(monkeypatch):
    """Numbers of heatmaps that are made in passes."""
    made, make = [], pose_passes._heatmaps
    monkeypatch.setattr(
        pose_passes,
        '_heatmaps',
        lambda *args: made.append((maps := make(*args)).shape[1]) or maps,
    )
    return made


def test_308_maps_at_1k_are_one_pass_and_at_4k_fifteen():
    assert pose_passes.keypoint_passes(308, (192, 256)) == [slice(0, 341)]
    passes = pose_passes.keypoint_passes(308, (768, 1024))
    assert len(passes) == 15 and passes[0] == slice(0, 21)
    assert list(range(308)) == [i for part in passes for i in range(308)[part]]
