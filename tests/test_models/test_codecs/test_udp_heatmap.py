import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from sapiens2_mm.models.codecs import (
    decode_udp_heatmaps,
    encode_udp_heatmaps,
    heatmap_maximum,
    heatmap_pck,
)

INPUT, HEATMAP = (96, 128), (24, 32)  # width, height


@pytest.fixture(scope='module')
def reference(data_dir):
    return load_file(data_dir / 'udp_codec.safetensors')


def random_keypoints(count, margin=0.0):
    generator = torch.Generator().manual_seed(0)
    size = torch.tensor(INPUT) + 2 * margin
    return torch.rand(2, count, 2, generator=generator) * size - margin


def test_encode_equals_reference(reference):
    heatmaps, weights = encode_udp_heatmaps(
        reference['keypoints'], reference['visible'], INPUT, HEATMAP, sigma=2
    )
    expected = reference['heatmaps'].float()[None]  # stored in float16
    torch.testing.assert_close(heatmaps, expected, atol=2.5e-4, rtol=0)
    assert torch.equal(weights, reference['keypoint_weights'])


@pytest.mark.parametrize('sigma', [1, 1.5, 2, 6])
def test_encode_equals_mmpose(sigma):
    codecs = pytest.importorskip('mmpose.codecs')
    codec = codecs.UDPHeatmap(INPUT, HEATMAP, sigma=sigma)
    keypoints = random_keypoints(200, margin=60.0)
    visible = torch.tensor([0.0, 0.3, 0.5, 1.0]).repeat(2, 50)
    heatmaps, weights = encode_udp_heatmaps(keypoints, visible, INPUT, HEATMAP, sigma)
    for i in range(2):
        expected = codec.encode(
            keypoints[i : i + 1].numpy(), visible[i : i + 1].numpy()
        )
        np.testing.assert_allclose(heatmaps[i], expected['heatmaps'], atol=2e-6)
        assert np.array_equal(weights[i : i + 1], expected['keypoint_weights'])


def test_encode_marks_far_keypoints_and_ignores_nan():
    keypoints = torch.tensor([[[48.0, 64.0], [-400.0, 64.0], [torch.nan, 1.0]]])
    heatmaps, weights = encode_udp_heatmaps(
        keypoints, torch.tensor([[1.0, 1.0, 0.0]]), INPUT, HEATMAP, sigma=2
    )
    assert weights.tolist() == [[1.0, 0.0, 0.0]]
    assert heatmaps[0, 0].max() > 0.9
    assert heatmaps[0, 1:].abs().max() == 0


def test_decode_equals_reference(reference):
    heatmaps, _ = encode_udp_heatmaps(
        reference['keypoints'], reference['visible'], INPUT, HEATMAP, sigma=2
    )
    keypoints, scores = decode_udp_heatmaps(heatmaps, INPUT)
    seen = reference['scores'] > 0
    torch.testing.assert_close(
        keypoints[seen], reference['decoded'][seen], atol=1e-3, rtol=0
    )
    torch.testing.assert_close(scores, reference['scores'], atol=2.5e-4, rtol=0)


def test_decode_of_noisy_maps_equals_reference(reference):
    keypoints, scores = decode_udp_heatmaps(reference['noisy_heatmaps'][None], INPUT)
    assert torch.equal(scores, reference['noisy_scores'])
    error = (keypoints - reference['noisy_decoded']).abs().amax(-1)
    peaked = reference['visible'] > 0
    assert error[peaked].max() < 1e-3
    # Maps of pure noise have near-singular Hessians: the step is long and amplifies
    # the rounding of the blur.
    assert error.median() < 1e-3
    assert error.max() < 1


# Clipped from above the top is flat, and with noise its step is ill-conditioned.
@pytest.mark.parametrize('noise, top', [(0.0, 100), (1e-3, 40)])
def test_decode_equals_mmpose_at_every_height(noise, top):
    """Peaks whose neighborhood lies below, inside and above the clip."""
    codecs = pytest.importorskip('mmpose.codecs')
    torch.manual_seed(0)
    heatmaps, _ = encode_udp_heatmaps(
        random_keypoints(300), torch.ones(2, 300), INPUT, HEATMAP, sigma=2
    )
    heights = torch.logspace(-2.7, math.log10(top), 300)[torch.randperm(300)]
    heatmaps = (heatmaps + noise * torch.randn_like(heatmaps)) * heights[:, None, None]
    keypoints, scores = decode_udp_heatmaps(heatmaps, INPUT)
    codec = codecs.UDPHeatmap(INPUT, HEATMAP, sigma=2)
    for i in range(2):
        expected, expected_scores = codec.decode(heatmaps[i].numpy())
        np.testing.assert_allclose(keypoints[i], expected[0], atol=1e-3, rtol=0)
        assert np.array_equal(scores[i], expected_scores[0])


def test_decode_where_the_blurred_map_peaks_elsewhere():
    """The factor comes from the whole map, not from around the maximum."""
    codecs = pytest.importorskip('mmpose.codecs')
    heatmaps = torch.zeros(1, 40, 32, 24)
    heatmaps[:, :, 20:30, 12:22] = 0.02 * torch.arange(1, 41).view(1, -1, 1, 1) / 40
    heatmaps[:, :, 5, 4] = 0.021
    heatmaps[:, :, 5, 5] = 0.015
    keypoints, _ = decode_udp_heatmaps(heatmaps, INPUT)
    expected, _ = codecs.UDPHeatmap(INPUT, HEATMAP).decode(heatmaps[0].numpy())
    np.testing.assert_allclose(keypoints, expected, atol=1e-3, rtol=0)


def test_maps_without_a_peak_have_score_0_and_the_center():
    nan, inf = float('nan'), float('inf')
    heatmaps = torch.zeros(1, 10, 32, 24)
    heatmaps[:, 1] = -1.0
    heatmaps[:, 2] = 0.3
    heatmaps[:, 3] = 1e-6  # constant below the clip
    heatmaps[:, 4] = nan
    heatmaps[:, 5, 9, 9] = 0.9
    heatmaps[:, 5, 31, 23] = nan
    heatmaps[:, 6, 9, 9] = inf
    heatmaps[:, 7] = -inf
    heatmaps[:, 8] = 200.0  # constant above the clip
    heatmaps[:, 9, 4, 4] = -inf
    keypoints, scores = decode_udp_heatmaps(heatmaps, INPUT)
    assert scores[0].tolist() == [0.0] * 10
    assert keypoints[0].tolist() == [[48.0, 64.0]] * 10


def test_maps_with_an_odd_peak_are_finite():
    heatmaps = torch.zeros(1, 5, 32, 24)
    heatmaps[:, 0, 0, 0] = 1.0  # one pixel in a corner
    heatmaps[:, 1, 31, 23] = 100.0
    heatmaps[:, 2] = -5.0
    heatmaps[:, 2, 3, 3] = 1e-2  # one weak pixel, everything else negative
    heatmaps[:, 3, 10] = 1.0  # a line: singular Hessian
    heatmaps[:, 4, 3, 3] = 0.5
    heatmaps[:, 4, 4, 4] = -float('inf')
    keypoints, scores = decode_udp_heatmaps(heatmaps, INPUT)
    assert keypoints.isfinite().all()
    torch.testing.assert_close(scores, torch.tensor([[1.0, 100.0, 1e-2, 1.0, 0.5]]))


def test_decode_takes_any_layout_and_batch():
    heatmaps, _ = encode_udp_heatmaps(
        random_keypoints(30), torch.ones(2, 30), INPUT, HEATMAP, sigma=2
    )
    keypoints, scores = decode_udp_heatmaps(heatmaps, INPUT)
    strided = heatmaps.to(memory_format=torch.channels_last)
    assert torch.equal(decode_udp_heatmaps(strided, INPUT)[0], keypoints)
    alone = decode_udp_heatmaps(heatmaps[1:], INPUT)
    assert torch.equal(alone[0], keypoints[1:])
    assert torch.equal(alone[1], scores[1:])
    assert decode_udp_heatmaps(heatmaps[:0], INPUT)[0].shape == (0, 30, 2)


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_maps_are_decoded_in_float32(dtype):
    heatmaps, _ = encode_udp_heatmaps(
        random_keypoints(30), torch.ones(2, 30), INPUT, HEATMAP, sigma=2
    )
    half = heatmaps.to(dtype)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        decoded = decode_udp_heatmaps(half, INPUT)
    for ours, expected in zip(
        decoded, decode_udp_heatmaps(half.float(), INPUT), strict=True
    ):
        assert ours.dtype == torch.float32
        assert torch.equal(ours, expected)


def test_maximum_is_the_first_one():
    heatmaps = torch.zeros(1, 2, 4, 5)
    heatmaps[0, 0, 1, 3] = heatmaps[0, 0, 2, 1] = 7.0
    locations, values = heatmap_maximum(heatmaps)
    assert locations.tolist() == [[[3, 1], [0, 0]]]
    assert values.tolist() == [[7.0, 0.0]]


def test_round_trip_error_at_full_size():
    """The documented numbers of the official codec, which is no exact inverse."""
    input_size = torch.tensor([768, 1024])
    distance = torch.arange(0.0, 48.0)  # from the border, in pixels
    points = torch.cat((distance, 1023 - distance))
    middle = torch.full_like(points, 400.0)
    keypoints = torch.stack((middle, points), dim=-1)[None]
    heatmaps, _ = encode_udp_heatmaps(
        keypoints, torch.ones(1, 96), (768, 1024), (192, 256), sigma=6
    )
    decoded, _ = decode_udp_heatmaps(heatmaps, (768, 1024))
    error = (decoded - keypoints)[0, :, 1]
    rest = (decoded * (input_size - 1) / input_size - keypoints)[0, :, 1]
    inner = torch.cat((distance, distance)) >= 24
    assert rest[inner].abs().max() < 2e-4
    assert 0.97 < error[inner].max() < 1
    assert 6 < rest.abs().max() < 7


def test_pck_equals_mmpose():
    functional = pytest.importorskip('mmpose.evaluation.functional')
    torch.manual_seed(0)
    target, weights = encode_udp_heatmaps(
        random_keypoints(50), torch.ones(2, 50), INPUT, HEATMAP, sigma=2
    )
    pred, _ = encode_udp_heatmaps(
        random_keypoints(50) + 8 * torch.randn(2, 50, 2),
        torch.ones(2, 50),
        INPUT,
        HEATMAP,
        sigma=2,
    )
    weights = weights * (torch.rand(2, 50) < 0.7)
    weights[:, 7] = 0
    _, expected, _ = functional.pose_pck_accuracy(
        pred.numpy(), target.numpy(), weights.numpy() > 0
    )
    assert 0.1 < expected < 0.9
    torch.testing.assert_close(
        heatmap_pck(pred, target, weights), torch.tensor(expected, dtype=torch.float32)
    )
    assert heatmap_pck(pred, target, torch.zeros(2, 50)) == 0


@pytest.mark.parametrize('size', [0, 4])
def test_even_kernel_is_an_error(size):
    with pytest.raises(ValueError, match=f'odd and positive, got {size}'):
        decode_udp_heatmaps(torch.zeros(1, 1, 4, 4), INPUT, blur_kernel_size=size)
