import pytest
import torch

from sapiens2_mm.engine.evidence.intervals import estimate


def ratio(total: torch.Tensor) -> float:
    return float(total[0] / total[1])


def test_mean_over_seeds_pools_images():
    runs = [
        torch.tensor([[1.0, 1.0], [0.0, 3.0]]),  # 1 of 4
        torch.tensor([[3.0, 4.0], [0.0, 0.0]]),  # 3 of 4
    ]
    assert estimate(ratio, runs).mean == pytest.approx(0.5)


def test_interval_is_that_of_the_mean_of_images():
    torch.manual_seed(0)
    values = torch.randn(400, 1) + 5
    runs = [torch.cat((values, torch.ones(400, 1)), dim=1)]
    found = estimate(ratio, runs, num_draws=2000)
    half = 1.96 * float(values.std()) / 400**0.5
    assert found.low == pytest.approx(found.mean - half, abs=0.02)
    assert found.high == pytest.approx(found.mean + half, abs=0.02)


def test_seeds_widen_it():
    seeds = [torch.tensor([[value, 1.0]] * 50) for value in (1.0, 2.0, 6.0)]
    found = estimate(ratio, seeds)
    assert (found.low, found.mean, found.high) == (1, 3, 6)


def test_a_difference_is_paired():
    """Hard images and bad seeds that both share cancel."""
    torch.manual_seed(0)
    hard = 10 * torch.rand(60, 1)
    counts = torch.ones(60, 1)
    one = [torch.cat((hard + seed + 1, counts), 1) for seed in (0, 50)]
    other = [torch.cat((hard + seed, counts), 1) for seed in (0, 50)]
    found = estimate(ratio, one, minus=other)
    assert found.low == pytest.approx(1, abs=1e-4)
    assert found.high == pytest.approx(1, abs=1e-4)
