from math import log

import pytest
import torch

from sapiens2_mm.models.losses import SILogLoss


def test_silog_ignores_part_of_a_common_factor():
    target = torch.rand(2, 1, 8, 6) + 0.5
    mask = torch.ones_like(target, dtype=torch.bool)
    value = SILogLoss()(target * 2, target, mask)
    assert value == pytest.approx(0.5**0.5 * log(2), rel=1e-5)
    assert SILogLoss(variance_focus=1.0)(target * 2, target, mask) < 1e-3
