import pytest
import torch
from dense_maps import some_maps

from sapiens2_mm.models.losses import ChromaticityLoss, LowFrequencyL1Loss, RGBMeanLoss


def test_rgb_mean_is_blind_to_the_place_of_a_color():
    pred = torch.zeros(1, 3, 2, 2)
    pred[:, 0, 0] = 1.0
    mask = torch.ones(1, 1, 2, 2, dtype=torch.bool)
    assert RGBMeanLoss()(pred, pred.flip(2), mask) == 0
    assert RGBMeanLoss()(pred, torch.zeros_like(pred), mask) == pytest.approx(0.5 / 3)


def test_chromaticity_is_blind_to_brightness_and_clamps():
    _, target, mask = some_maps()
    target = target / 4
    pred = (2 * target).requires_grad_()
    assert ChromaticityLoss()(pred, target, mask) < 1e-4
    outside = torch.full_like(target, 1.5).requires_grad_()
    ChromaticityLoss()(outside, target, mask).backward()
    assert (outside.grad == 0).all()


def test_window_error():
    with pytest.raises(ValueError, match='64x48 pixels must be a multiple of window 7'):
        LowFrequencyL1Loss(window=7)(*some_maps())
