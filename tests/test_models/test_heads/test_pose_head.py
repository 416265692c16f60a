import numpy as np
import pytest
import torch
from mmengine.registry import DefaultScope
from mmengine.structures import InstanceData
from safetensors.torch import load_file

from sapiens2_mm.registry import MODELS

pytest.importorskip('mmpose')

from mmpose.datasets.transforms import GenerateTarget, PackPoseInputs
from mmpose.registry import MODELS as MMPOSE_MODELS
from mmpose.structures import PoseDataSample

from sapiens2_mm.models import Sapiens2PoseHead
from sapiens2_mm.models.heads.udp_heatmap import encode_udp_heatmaps

K = 5
INPUT, HEATMAP = (48, 64), (12, 16)  # width, height
CODEC = dict(
    type='mmpose.UDPHeatmap', input_size=INPUT, heatmap_size=HEATMAP, sigma=1.5
)
FLIP_INDICES = [0, 2, 1, 4, 3]


def head_cfg(**kwargs):
    cfg = dict(
        type='sapiens2_mm.Sapiens2PoseHead',
        in_channels=32,
        out_channels=K,
        deconv_out_channels=(16, 8),
        deconv_kernel_sizes=(4, 4),
        conv_out_channels=(8,),
        conv_kernel_sizes=(1,),
        decoder=CODEC,
    )
    return {**cfg, **kwargs}


def estimator_cfg(head=None, **kwargs):
    return dict(
        type='mmpose.TopdownPoseEstimator',
        _scope_='mmpose',
        data_preprocessor=dict(type='mmpose.PoseDataPreprocessor'),
        backbone=dict(
            type='sapiens2_mm.Sapiens2',
            arch=dict(
                embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64
            ),
            img_size=(64, 48),
            out_type='featmap',
        ),
        head=head or head_cfg(),
        **kwargs,
    )


def table(num_keypoints):
    """A keypoint table: one point in the middle, the others in mirrored pairs."""
    names = ['nose'] + [
        f'{side}_{i}' for i in range(num_keypoints // 2) for side in ('left', 'right')
    ]

    def swap(name):
        side, _, rest = name.partition('_')
        return {'left': f'right_{rest}', 'right': f'left_{rest}'}.get(side, '')

    return dict(
        dataset_name='test',
        keypoint_info={
            i: dict(name=name, id=i, color=[0, 0, 0], type='', swap=swap(name))
            for i, name in enumerate(names)
        },
        skeleton_info={},
        joint_weights=[1.0] * num_keypoints,
        sigmas=[0.05] * num_keypoints,
    )


def packed(keypoints, visible, classic=False):
    """A sample as it leaves the training pipeline."""
    results = dict(
        img=np.zeros((64, 48, 3), np.uint8),
        bbox=np.float32([[0, 0, 48, 64]]),
        bbox_score=np.ones(1, np.float32),
        keypoints=keypoints,
        keypoints_visible=visible,
        transformed_keypoints=keypoints,
        dataset_keypoint_weights=np.ones((1, K), np.float32),
        input_size=INPUT,
        input_center=np.float32([24, 32]),
        input_scale=np.float32([48, 64]),
        flip_indices=FLIP_INDICES,
    )
    if classic:
        results = GenerateTarget(encoder=CODEC)(results)
    return PackPoseInputs(pack_transformed=True)(results)['data_samples']


@pytest.fixture
def persons():
    rng = np.random.default_rng(0)
    persons = []
    for _ in range(3):
        keypoints = rng.uniform((0, 0), INPUT, (1, K, 2)).astype(np.float32)
        visible = np.float32([[1, 0, 1, 0.4, 1]])
        persons.append((keypoints, visible))
    return persons


@pytest.fixture
def feats():
    torch.manual_seed(0)
    return (torch.randn(3, 32, 4, 3),)


def test_equals_reference(data_dir):
    reference = load_file(data_dir / 'head_pose.safetensors')
    head = Sapiens2PoseHead(
        in_channels=64,
        out_channels=308,
        deconv_out_channels=(32, 24),
        deconv_kernel_sizes=(4, 4),
        conv_out_channels=(24, 16, 16),
        conv_kernel_sizes=(1, 1, 1),
    )
    prefix = 'state_dict.'
    head.load_state_dict(
        {
            key.removeprefix(prefix): value
            for key, value in reference.items()
            if key.startswith(prefix)
        }
    )
    out = head((reference['feat'],))
    assert (out - reference['out']).abs().max() < 1e-5


@pytest.mark.parametrize(
    'in_channels, deconv, conv, millions',
    [
        (1024, (1024, 768), (512, 512, 256), 30.23),
        (1280, (1024, 768), (512, 512, 256), 34.42),
        (1536, (1536, 1024), (768, 512, 256), 64.31),
        (2432, (1024, 768), (512, 512, 256), 53.30),
    ],
)
def test_parameter_counts_of_the_released_sizes(in_channels, deconv, conv, millions):
    with torch.device('meta'):
        head = Sapiens2PoseHead(
            in_channels, 308, deconv, conv_out_channels=conv, decoder=CODEC
        )
    count = sum(p.numel() for p in head.parameters())
    assert round(count / 1e6, 2) == millions


def test_only_the_predictor_depends_on_the_number_of_keypoints():
    shapes = [
        {name: value.shape for name, value in MODELS.build(cfg).state_dict().items()}
        for cfg in (head_cfg(), head_cfg(out_channels=17))
    ]
    assert list(shapes[0]) == list(shapes[1])
    differ = [name for name in shapes[0] if shapes[0][name] != shapes[1][name]]
    assert differ == ['conv_pose.weight', 'conv_pose.bias']


def test_init_is_kaiming_fan_out():
    torch.manual_seed(0)
    head = MODELS.build(head_cfg(in_channels=64, deconv_out_channels=(256, 64)))
    head.init_weights()
    for layer in (head.deconv_layers[0], head.conv_pose):
        fan_out = layer.weight.shape[0] * layer.weight[0, 0].numel()
        assert layer.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=0.2)
    assert head.conv_pose.bias.abs().max() == 0
    assert head.conv_layers[0].bias.abs().max() == 0


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


class ExactHead(Sapiens2PoseHead):
    """Returns exact Gaussians at the keypoints that it gets in place of a map."""

    def forward(self, feats):
        keypoints = feats[-1]
        return encode_udp_heatmaps(
            keypoints,
            torch.ones(keypoints.shape[:2]),
            self.decoder.input_size,
            self.decoder.heatmap_size,
            self.decoder.sigma,
        )[0]


def test_flip_test_does_not_shift():
    size = np.array((192, 256))
    codec = dict(CODEC, input_size=(192, 256), heatmap_size=(48, 64), sigma=2)
    head = ExactHead(in_channels=1, out_channels=K, decoder=codec)
    torch.manual_seed(0)
    keypoints = 30 + torch.rand(2, K, 2) * (torch.from_numpy(size) - 60)
    mirrored = keypoints[:, FLIP_INDICES].clone()
    mirrored[..., 0] = 191 - mirrored[..., 0]
    samples = [PoseDataSample(metainfo=dict(flip_indices=FLIP_INDICES))] * 2
    plain = head.predict((keypoints,), samples)
    flipped = head.predict([(keypoints,), (mirrored,)], samples, dict(flip_test=True))
    for i in range(2):
        np.testing.assert_allclose(
            flipped[i].keypoints, plain[i].keypoints, atol=1e-3, rtol=0
        )
        expected = keypoints[i].numpy() * size / (size - 1)
        np.testing.assert_allclose(flipped[i].keypoints[0], expected, atol=1e-3, rtol=0)


def test_predictions_are_float32_arrays_in_any_precision(feats):
    head = MODELS.build(head_cfg()).eval()
    samples = [PoseDataSample(metainfo=dict(flip_indices=FLIP_INDICES))] * 3
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        inputs = (feats[0].to(dtype),)
        with torch.no_grad():
            preds, fields = head.to(dtype).predict(
                [inputs, inputs], samples, dict(flip_test=True, output_heatmaps=True)
            )
        assert len(preds) == 3
        for pred, field in zip(preds, fields, strict=True):
            assert isinstance(pred, InstanceData)
            assert pred.keypoints.shape == (1, K, 2)
            assert pred.keypoint_scores.shape == (1, K)
            assert pred.keypoints.dtype == np.float32
            assert pred.keypoint_scores.dtype == np.float32
            assert field.heatmaps.shape == (K, 16, 12)


@pytest.mark.parametrize('scope', ['mmpose', 'mmseg', 'sapiens2_mm', 'acme'])
def test_estimator_in_any_default_scope(scope, persons):
    with DefaultScope.overwrite_default_scope(scope):
        model = MODELS.build(estimator_cfg(test_cfg=dict(flip_test=True)))
    model.init_weights()
    data = dict(
        inputs=[torch.zeros(3, 64, 48, dtype=torch.uint8)] * 3,
        data_samples=[packed(*person) for person in persons],
    )
    losses = model(**model.data_preprocessor(data, training=True), mode='loss')
    assert sorted(losses) == ['acc_pose', 'loss_kpt']
    losses['loss_kpt'].backward()
    assert [n for n, p in model.named_parameters() if p.grad is None] == []
    results = model.eval().test_step(data)
    assert results[0].pred_instances.keypoints.shape == (1, K, 2)
    assert np.isfinite(results[0].pred_instances.keypoints).all()


def test_estimator_builds_on_meta_with_official_names():
    with torch.device('meta'):
        model = MMPOSE_MODELS.build(estimator_cfg())
    names = [name for name in model.state_dict() if name.startswith('head.')]
    assert names == [
        'head.deconv_layers.0.weight',
        'head.deconv_layers.3.weight',
        'head.conv_layers.0.weight',
        'head.conv_layers.0.bias',
        'head.conv_pose.weight',
        'head.conv_pose.bias',
    ]


def test_other_codecs_keep_mmposes_path(persons, feats):
    codec = dict(
        type='mmpose.MSRAHeatmap', input_size=INPUT, heatmap_size=HEATMAP, sigma=2
    )
    head = MODELS.build(head_cfg(decoder=codec, target='heatmaps'))
    samples = [packed(*person, classic=True) for person in persons]
    with torch.no_grad():
        assert head.predict(feats, samples)[0].keypoints.shape == (1, K, 2)
    with pytest.raises(ValueError, match=r'needs the decoder UDPHeatmap.*MSRAHeatmap'):
        MODELS.build(head_cfg(decoder=codec))


def test_mirror_table_of_another_size_fails_when_the_head_is_built():
    head = MODELS.build(head_cfg(metainfo=table(K)))
    assert head.flip_indices == FLIP_INDICES
    with pytest.raises(ValueError, match=r'17 flip_indices.*out_channels 5'):
        MODELS.build(estimator_cfg(head_cfg(metainfo=table(17))))


def test_mirror_table_of_samples_is_checked_at_first_use(feats):
    head = MODELS.build(head_cfg())
    feats = [feats, feats]
    with pytest.raises(ValueError, match=r'17 flip_indices.*out_channels 5'):
        samples = [PoseDataSample(metainfo=dict(flip_indices=list(range(17))))] * 3
        head.predict(feats, samples, dict(flip_test=True))
    with pytest.raises(ValueError, match='flip_test needs flip_indices'):
        head.predict(feats, [PoseDataSample()] * 3, dict(flip_test=True))
    for setting in (dict(shift_heatmap=True), dict(flip_mode='offset')):
        with pytest.raises(ValueError, match='without a shift; set flip_mode'):
            head.predict(feats, [PoseDataSample()] * 3, dict(flip_test=True, **setting))
    own = MODELS.build(head_cfg(metainfo=table(K)))
    assert len(own.predict(feats, [PoseDataSample()] * 3, dict(flip_test=True))) == 3


def test_errors(persons, feats):
    samples = [packed(*person) for person in persons]
    with pytest.raises(ValueError, match=r"target must be .* got 'maps'"):
        MODELS.build(head_cfg(target='maps'))
    with pytest.raises(ValueError, match='absent_weight must be at least 0, got -1'):
        MODELS.build(head_cfg(absent_weight=-1))
    for weight in (-1.0, float('nan')):
        with pytest.raises(ValueError, match='group_weights must be finite'):
            MODELS.build(head_cfg(group_weights=dict(face=weight)))
    with pytest.raises(ValueError, match='prediction needs a decoder'):
        MODELS.build(head_cfg(decoder=None)).predict(feats, samples)
    with pytest.raises(ValueError, match='needs a decoder, which also encodes'):
        MODELS.build(head_cfg(decoder=None)).loss(feats, samples)
    with pytest.raises(ValueError, match='add GenerateTarget'):
        MODELS.build(head_cfg(target='heatmaps')).loss(feats, samples)
    with pytest.raises(ValueError, match=r'5 keypoints, .* out_channels 6'):
        MODELS.build(head_cfg(out_channels=6)).loss(feats, samples)
    small = (feats[0][..., :2],)
    with pytest.raises(ValueError, match=r'\(3, 5, 16, 8\).*\(3, 5, 16, 12\)'):
        MODELS.build(head_cfg()).loss(small, samples)
    with pytest.raises(
        ValueError, match=r'\(8, 16\) do not fit heatmap_size \(12, 16\)'
    ):
        MODELS.build(head_cfg()).predict(small, samples)
    del samples[0].gt_instances.transformed_keypoints
    with pytest.raises(ValueError, match='pack_transformed=True'):
        MODELS.build(head_cfg()).loss(feats, samples)
