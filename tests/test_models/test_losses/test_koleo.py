import math

import pytest
import torch
from torch.nn import functional as F

from sapiens2_mm.models.losses import KoLeoLoss
from sapiens2_mm.models.losses.koleo import koleo


def test_three_points_by_hand():
    # On the circle at 0, 60 and 180 degrees: the first two are each other's nearest,
    # at distance 1; the third's nearest is the second, at 120 degrees.
    angles = torch.tensor([0.0, 60.0, 180.0]).deg2rad()
    points = torch.stack([angles.cos(), angles.sin()], dim=1)
    lengths = torch.tensor([[1.0], [5.0], [0.1]])  # do not matter
    expected = -(2 * math.log(1) + math.log(math.sqrt(3))) / 3
    assert float(koleo(points * lengths)) == pytest.approx(expected, abs=1e-6)


def test_one_sample_gives_zero():
    x = torch.randn(1, 4, requires_grad=True)
    loss = koleo(x)
    loss.backward()
    assert float(loss) == 0


def test_equal_samples_stay_finite():
    x = torch.ones(3, 4, requires_grad=True)
    loss = koleo(x)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(-math.log(1e-8), rel=1e-3)
    assert torch.isfinite(x.grad).all()


def test_gradient_flows_through_both_vectors():
    x = torch.tensor([[1.0, 0.0], [0.9, 0.1], [-1.0, 0.5]], requires_grad=True)
    unit = F.normalize(x, dim=-1)
    (-(unit[0] - unit[1]).norm().log() / 3).backward()
    one_way = x.grad.clone()
    x.grad = None
    koleo(x).backward()
    # 0 and 1 are mutual neighbors: twice the gradient of one of the two terms on 0
    torch.testing.assert_close(x.grad[0], 2 * one_way[0])


def test_half_precision_input():
    loss = koleo(torch.randn(4, 8).bfloat16())
    assert loss.dtype == torch.float32 and torch.isfinite(loss)


def test_views_are_not_mixed():
    torch.manual_seed(0)
    view = torch.randn(4, 8)
    both = torch.stack([view, view + 1e-4])  # the other view would be the nearest
    expected = (koleo(both[0]) + koleo(both[1])) / 2
    torch.testing.assert_close(KoLeoLoss(loss_weight=1.0)(both), expected)
    summed = KoLeoLoss(reduction='sum', loss_weight=1.0)(both)
    torch.testing.assert_close(summed, 2 * expected)


def test_gathered_processes_equal_the_joined_batch():
    torch.manual_seed(0)
    x = torch.randn(6, 8)
    unit = F.normalize(x, dim=-1)
    parts = []
    for first in (0, 3):
        loss = KoLeoLoss(loss_weight=1.0)
        loss.gather = lambda own, first=first: (unit, first)
        parts.append(loss(x[None, first : first + 3]))
    torch.testing.assert_close(sum(parts) / 2, koleo(x))


def test_unknown_reduction():
    with pytest.raises(ValueError, match="'mean' or 'sum', got 'max'"):
        KoLeoLoss(reduction='max')
