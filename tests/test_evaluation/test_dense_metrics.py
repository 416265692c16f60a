"""Metrics of normals, pointmaps, albedo, depth and mattes."""

import json
from math import inf, sqrt

import pytest
import torch
import torch.nn.functional as F
from processes import run_processes
from safetensors.torch import load_file

from sapiens2_mm.evaluation import (
    AlbedoMetric,
    DepthMetric,
    MattingMetric,
    NormalMetric,
    PointmapMetric,
)
from sapiens2_mm.evaluation.functional import (
    align_depth,
    angular_error,
    histogram_median,
    sobel_normals,
)
from sapiens2_mm.registry import METRICS

ALL = [
    NormalMetric,
    PointmapMetric,
    AlbedoMetric,
    DepthMetric,
    MattingMetric,
]


def some_samples(number=5, size=(20, 16)):
    """Random samples with masks of different size, one of them empty."""
    samples = []
    for index in range(number):
        generator = torch.Generator().manual_seed(index)

        def rand(channels, generator=generator):
            return torch.rand(channels, *size, generator=generator)

        mask = rand(1) < 0.2 * index
        sample = dict(img_path=f'{index}.jpg', gt_mask=mask)
        for name in ('normal', 'pointmap', 'albedo', 'foreground'):
            sample[f'gt_{name}'], sample[f'pred_{name}'] = rand(3), rand(3)
        for name in ('depth', 'alpha'):
            sample[f'gt_{name}'], sample[f'pred_{name}'] = rand(1), rand(1)
        sample['gt_foreground_mask'] = mask
        sample['gt_scale'] = torch.tensor([1.0 + index])
        sample['pred_scale'] = torch.tensor([2.0 + index])
        samples.append(sample)
    return samples


def evaluate(metric, samples, batch_size=1):
    for start in range(0, len(samples), batch_size):
        metric.process(None, samples[start : start + batch_size])
    return metric.evaluate(len(samples))


@pytest.mark.parametrize('name', ['normal', 'pointmap', 'albedo'])
def test_metrics_equal_the_reference(name, data_dir):
    inputs = load_file(data_dir / 'losses_dense.safetensors')
    expected = json.loads((data_dir / 'metrics_dense.json').read_text())[name]
    one = torch.ones(1)
    samples = [
        dict(
            gt_mask=inputs['in.mask'][i] > 0,
            gt_normal=inputs['in.normal_gt'][i],
            pred_normal=inputs['in.normal_gt'][i] + 0.5 * inputs['in.normal_pred'][i],
            gt_pointmap=inputs['in.pointmap_gt'][i],
            pred_pointmap=inputs['in.pointmap_pred'][i],
            gt_scale=one,
            pred_scale=one,
            gt_albedo=inputs['in.albedo_gt'][i],
            pred_albedo=inputs['in.albedo_pred'][i],
        )
        for i in range(2)
    ]
    metric = METRICS.build(dict(type=f'sapiens2_mm.{name.title()}Metric'))
    metrics = evaluate(metric, samples)
    assert metrics.keys() == {f'{name}/{key}' for key in expected}
    for key, value in expected.items():
        assert metrics[f'{name}/{key}'] == pytest.approx(value, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize('cls', ALL)
def test_batches_do_not_matter(cls):
    alone = evaluate(cls(), some_samples())
    together = evaluate(cls(), some_samples(), batch_size=3)
    assert alone == together and all(isinstance(v, float) for v in alone.values())


def _one_process(rank, folder):
    results = {}
    # mmengine's sampler pads 5 samples to 6 by repeating the first
    samples = some_samples()
    shard = (samples + samples[:1])[rank::2]
    for cls in ALL:
        metric = cls()
        metric.process(None, shard)
        metrics = metric.evaluate(5)
        if rank == 0:
            results[cls.__name__] = metrics
    if rank == 0:
        torch.save(results, folder / 'results.pt')


def test_two_processes_agree_with_one(tmp_path):
    run_processes(_one_process, tmp_path, 2)
    results = torch.load(tmp_path / 'results.pt')
    for cls in ALL:
        expected = evaluate(cls(), some_samples())
        for key, value in expected.items():
            assert results[cls.__name__][key] == pytest.approx(value, rel=1e-6), key


@pytest.mark.parametrize(
    'cls', [NormalMetric, PointmapMetric, AlbedoMetric, DepthMetric]
)
def test_nothing_valid_is_an_error(cls):
    empty = some_samples()[:1]
    assert not empty[0]['gt_mask'].any()
    with pytest.raises(ValueError, match='none of 1 samples has a valid pixel'):
        evaluate(cls(), empty)


def test_missing_fields_and_other_sizes_are_named():
    sample = some_samples()[4]
    with pytest.raises(ValueError, match=r"4\.jpg lacks \['gt_normal'\]"):
        bare = {k: v for k, v in sample.items() if k != 'gt_normal'}
        NormalMetric().process(None, [bare])
    with pytest.raises(ValueError, match=r'4\.jpg differ in size: .*\(3, 10, 8\)'):
        small = dict(sample, pred_normal=torch.rand(3, 10, 8))
        NormalMetric().process(None, [small])
    with pytest.raises(ValueError, match=r'pred_normal of 4\.jpg .* not finite'):
        broken = sample['pred_normal'].clone()
        broken[0, 3, 2] = float('nan')
        NormalMetric().process(None, [dict(sample, pred_normal=broken)])
    with pytest.raises(ValueError, match=r"units must be .* got 'mm'"):
        PointmapMetric(units='mm')
    with pytest.raises(ValueError, match=r"alignment must be .* got 'best'"):
        DepthMetric(alignment='best')


# ------------------------------------------------------------------------ known values


def test_angles_by_hand():
    target = torch.tensor([0.0, 0, 1]).reshape(3, 1, 1).repeat(1, 1, 4)
    pred = torch.tensor([[0.0, 0, 5], [1, 0, 0], [0, 0, -1], [0, 1, 1]]).T[:, None]
    valid = torch.ones(1, 1, 4, dtype=torch.bool)
    angles = angular_error(pred, target, valid)
    torch.testing.assert_close(angles, torch.tensor([0.0, 90, 180, 45]).double())
    assert angular_error(pred, target, ~valid).numel() == 0
    metrics = evaluate(
        NormalMetric(),
        [dict(pred_normal=pred, gt_normal=target, gt_mask=valid)],
    )
    assert metrics['normal/normal_mae'] == pytest.approx(78.75)
    rmse = sqrt((90**2 + 180**2 + 45**2) / 4)
    assert metrics['normal/normal_rmse'] == pytest.approx(rmse)
    assert metrics['normal/within_5_0_deg'] == 25


def test_thresholds_are_strict():
    target = torch.tensor([0.0, 0, 1]).reshape(3, 1, 1)
    pred = torch.tensor([1.0, 0, 0]).reshape(3, 1, 1)  # exactly 90 degrees
    metric = NormalMetric(thresholds=(90, 90.01))
    mask = torch.ones(1, 1, 1, dtype=torch.bool)
    metrics = evaluate(metric, [dict(pred_normal=pred, gt_normal=target, gt_mask=mask)])
    assert metrics['normal/within_90_0_deg'] == 0
    assert metrics['normal/within_90_01_deg'] == 100


def test_histogram_median():
    assert histogram_median(torch.tensor([3.0, 0, 2]), 0.5) == 0.25
    assert histogram_median(torch.tensor([1.0, 0, 4]), 0.5) == 1.25


def test_pointmap_units():
    """Canonical metrics ignore the predicted scale, metric ones use it."""
    points = torch.rand(3, 8, 8) + 1
    sample = dict(
        gt_pointmap=points,
        pred_pointmap=points / 2,
        gt_mask=torch.ones(1, 8, 8, dtype=torch.bool),
        gt_scale=torch.tensor([3.0]),
        pred_scale=torch.tensor([6.0]),  # twice too large: canonical points are right
    )
    canonical = evaluate(PointmapMetric(), [sample])
    assert canonical['pointmap/l2_mean'] == pytest.approx(0, abs=1e-6)
    assert canonical['pointmap/within_05_cm'] == 1
    metric = evaluate(PointmapMetric(units='metric'), [sample])
    expected = (points / 2).norm(dim=0).mean().item()
    assert metric['pointmap/l2_mean'] == pytest.approx(expected, rel=1e-5)


def test_sobel_normals_of_a_plane():
    rows, cols = torch.meshgrid(torch.arange(9.0), torch.arange(9.0), indexing='ij')
    points = torch.stack([cols, rows, 0.5 * cols + 0.25 * rows + 3])
    normals = F.normalize(sobel_normals(points)[:, 2:-2, 2:-2], dim=0)
    expected = F.normalize(torch.tensor([-0.5, -0.25, 1]).double(), dim=0)
    assert (normals - expected[:, None, None]).abs().max() < 1e-6


def test_whole_windows_keep_the_outside_out():
    points = torch.rand(3, 20, 20) + 1
    mask = torch.zeros(1, 20, 20, dtype=torch.bool)
    mask[:, 4:16, 4:16] = True
    sample = dict(
        gt_pointmap=points,
        pred_pointmap=torch.where(mask, points, points + 7),
        gt_mask=mask,
        gt_scale=torch.ones(1),
        pred_scale=torch.ones(1),
    )
    assert evaluate(PointmapMetric(), [sample])['pointmap/normal_mae'] > 1
    metric = PointmapMetric(whole_windows=True)
    assert evaluate(metric, [sample])['pointmap/normal_mae'] < 1e-3


def test_perfect_albedo():
    sample = some_samples()[4]
    metrics = evaluate(AlbedoMetric(), [dict(sample, pred_albedo=sample['gt_albedo'])])
    assert metrics['albedo/mae'] == metrics['albedo/grad_l1'] == 0
    assert metrics['albedo/psnr'] == inf
    assert metrics['albedo/ssim'] == pytest.approx(1)


def test_psnr_by_hand():
    sample = dict(
        gt_albedo=torch.zeros(3, 16, 16),
        pred_albedo=torch.full((3, 16, 16), 0.1),
        gt_mask=torch.ones(1, 16, 16, dtype=torch.bool),
    )
    metrics = evaluate(AlbedoMetric(), [sample])
    assert metrics['albedo/psnr'] == pytest.approx(20, rel=1e-5)
    assert metrics['albedo/mae'] == pytest.approx(0.1, rel=1e-5)


def test_depth_alignment():
    target = torch.rand(1, 8, 8) + 1
    mask = torch.ones(1, 8, 8, dtype=torch.bool)
    cases = {'none': target, 'scale': target / 3, 'scale_shift': 2 - target / 3}
    for alignment, pred in cases.items():
        sample = dict(gt_depth=target, pred_depth=pred, gt_mask=mask)
        metrics = evaluate(DepthMetric(alignment=alignment), [sample])
        assert metrics['depth/abs_rel'] < 1e-5 and metrics['depth/rmse'] < 1e-5
        assert metrics['depth/delta1'] == 1
    double = dict(gt_depth=target, pred_depth=2 * target, gt_mask=mask)
    metrics = evaluate(DepthMetric(alignment='none'), [double])
    assert metrics['depth/abs_rel'] == pytest.approx(1, rel=1e-5)
    assert metrics['depth/delta3'] == 0  # a factor 2 is beyond 1.25 ** 3
    fitted = align_depth(torch.tensor([1.0, 2]), torch.tensor([2.0, 2]), False)
    assert fitted.tolist() == pytest.approx([1.2, 2.4])


def test_matting_by_hand():
    sample = dict(
        gt_alpha=torch.ones(1, 4, 4),
        pred_alpha=torch.full((1, 4, 4), 0.5),
        gt_foreground=torch.zeros(3, 4, 4),
        pred_foreground=torch.full((3, 4, 4), 0.25),
        gt_foreground_mask=torch.zeros(1, 4, 4, dtype=torch.bool),
    )
    metrics = evaluate(MattingMetric(), [sample])
    assert metrics == {'matting/alpha_mae': 0.5, 'matting/alpha_mse': 0.25}
    sample['gt_foreground_mask'][:, :2] = True
    metrics = evaluate(MattingMetric(with_foreground=True), [sample])
    assert metrics['matting/foreground_mae'] == 0.25
