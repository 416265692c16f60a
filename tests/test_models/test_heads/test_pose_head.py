"""The pose head: numbers, predictions, registry and errors."""

import numpy as np
import pytest
import torch
from mmengine.registry import DefaultScope
from mmengine.structures import InstanceData
from safetensors.torch import load_file

from sapiens2_mm.registry import MODELS

pytest.importorskip('mmpose')

from mmpose.datasets.datasets.utils import parse_pose_metainfo
from mmpose.registry import MODELS as MMPOSE_MODELS
from mmpose.structures import PoseDataSample
from tiny_pose_head import (
    CODEC,
    FLIP_INDICES,
    HEATMAP,
    INPUT,
    K,
    estimator_cfg,
    head_cfg,
    packed,
    table,
)

from sapiens2_mm.models import Sapiens2PoseHead
from sapiens2_mm.models.codecs.udp_heatmap import encode_udp_heatmaps


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


def test_numbers_of_metainfo_and_head():
    head = MODELS.build(estimator_cfg()).head
    raw = table(K)
    parsed = parse_pose_metainfo(raw)
    for meta in (raw, parsed, {}, dict(classes=['a'])):
        head.check_metainfo(meta)
    message = '17 keypoints, 17 sigmas, .*17 flip_indices.*out_channels=5; these'
    with pytest.raises(ValueError, match=message):
        head.check_metainfo(parse_pose_metainfo(table(17)))
    for key, count in dict(sigmas=0, joint_weights=17, flip_indices=6).items():
        message = f'5 keypoints, .*{count} {key}.*out_channels=5'
        with pytest.raises(ValueError, match=message):
            head.check_metainfo({**raw, key: [0.1] * count})
    with pytest.raises(ValueError, match=r'133 keypoint_colors.*out_channels=5'):
        head.check_metainfo({**parsed, 'keypoint_colors': np.zeros((133, 3))})


def test_other_input_sizes_are_decoded_at_the_same_stride():
    """A wider input, in pixels of its own crop."""
    head = ExactHead(in_channels=1, out_channels=K, decoder=CODEC)
    wide = dict(CODEC, input_size=(96, 64), heatmap_size=(24, 16))
    wide = ExactHead(in_channels=1, out_channels=K, decoder=wide)
    points = torch.tensor([[[70.0, 30.0]] * K])
    maps = wide.forward((points,))
    expected = wide.decode(maps)[0].keypoints
    np.testing.assert_array_equal(head.decode(maps)[0].keypoints, expected)


FLIP_TEST = dict(flip_test=True)


def test_errors(persons, feats):
    samples = [packed(*person) for person in persons]
    with pytest.raises(ValueError, match=r"one of .*'keypoints'\], got 'maps'"):
        MODELS.build(head_cfg(target='maps'))
    with pytest.raises(RuntimeError, match='decoder has not been set'):
        MODELS.build(head_cfg(decoder=None)).predict(feats, samples)
    with pytest.raises(ValueError, match='input size, codec and out_channels must'):
        MODELS.build(head_cfg(out_channels=6)).loss(feats, samples)
    small = (feats[0][..., :2],)
    with pytest.raises(ValueError, match=r'\(3, 5, 16, 8\).*\(3, 5, 16, 12\)'):
        MODELS.build(head_cfg()).loss(small, samples)
    head, flipped = MODELS.build(head_cfg()), [feats, feats]
    for option in (dict(shift_heatmap=True), dict(flip_mode='offset')):
        with pytest.raises(
            ValueError, match=r'of 5 heatmaps .*flip_mode="heatmap" and'
        ):
            head.predict(flipped, samples, dict(FLIP_TEST, **option))
    coarse = MODELS.build(head_cfg(decoder=dict(CODEC, heatmap_size=(24, 32))))
    with pytest.raises(
        ValueError, match=r'\(12, 16\) belong to .*\(24.0, 32.0\), .*\(48, 64\)'
    ):
        coarse.predict(feats, samples)
    for meta, got in (({}, 0), (dict(flip_indices=list(range(17))), 17)):
        with pytest.raises(ValueError, match=f'5 heatmaps .* flip_indices, got {got}'):
            head.predict(flipped, [PoseDataSample(metainfo=meta)] * 3, FLIP_TEST)
    with pytest.raises(ValueError, match=r'"heatmaps" .* needs GenerateTarget'):
        MODELS.build(head_cfg(target='heatmaps')).loss(feats, samples)
    with pytest.raises(ValueError, match=r'"keypoints" .* needs a decoder'):
        MODELS.build(head_cfg(decoder=None)).loss(feats, samples)
    del samples[0].gt_instances.transformed_keypoints
    with pytest.raises(ValueError, match='pack_transformed=True'):
        MODELS.build(head_cfg()).loss(feats, samples)
