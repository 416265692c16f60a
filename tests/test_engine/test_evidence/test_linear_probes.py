import torch

from sapiens2_mm.engine.evidence.linear_probes import (
    LinearProbes,
    fit_probes,
    probe,
)
from sapiens2_mm.engine.evidence.pretraining import raw_patches
from sapiens2_mm.engine.evidence.probe_tasks import TASKS


def test_scale_and_offset_of_features_do_not_count(probe_data):
    features = raw_patches(probe_data.images, 32) / 255
    outs = [
        fit_probes(x, probe_data, iters=3, batch_size=2)(x)['seg']
        for x in (features, 100 * features + 7)
    ]
    torch.testing.assert_close(*outs, rtol=1e-3, atol=1e-3)


def test_rates_are_trained_as_if_alone(probe_data):
    torch.manual_seed(0)
    features = torch.randn(len(probe_data), 12, 9, 8)
    together = fit_probes(features, probe_data, (1e-3, 1e-2), iters=3, batch_size=2)
    alone = fit_probes(features, probe_data, (1e-2,), iters=3, batch_size=2)
    torch.testing.assert_close(together.weights[1], alone.weights[0])
    assert not torch.equal(together.weights[0], together.weights[1])


def test_features_that_hold_the_colors_tell_albedo(probe_data):
    small = probe_data.at_size((12, 9))
    features = small.albedo.permute(0, 2, 3, 1)
    metrics = []
    for x in (torch.zeros_like(features), features):
        sums, rates = probe((x, small), (x, small), 1.0, seed=0, iters=60)
        metrics.append(TASKS['albedo'].metric(sums['albedo'].sum(0)))
        assert list(sums) == list(rates) == list(TASKS)
    assert metrics[1] < 0.5 * metrics[0]


def test_probes_are_linear_in_each_patch(probe_data):
    features = torch.randn(2, 4, 3, 5)
    probes = LinearProbes(features, 2)
    for weight in probes.weights:
        torch.nn.init.normal_(weight)
    changed = features.clone()
    changed[0, 1, 2] += 1
    difference = probes(changed)['normal'] - probes(features)['normal']
    assert difference.shape == (4, 3, 4, 3)
    rows = difference.abs().sum(1).nonzero().tolist()
    assert rows == [[0, 1, 2], [2, 1, 2]]  # of both rates, that patch alone
