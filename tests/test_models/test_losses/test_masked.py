import pytest
import torch

from sapiens2_mm.models.losses import MaskedGradientLoss, MaskedL2Loss


def test_l2_is_the_squared_distance():
    pred = torch.zeros(1, 3, 1, 2)
    target = torch.tensor([1.0, 2, 2]).reshape(1, 3, 1, 1).repeat(1, 1, 1, 2)
    target[..., 1] = 50
    mask = torch.tensor([[[[True, False]]]])
    assert MaskedL2Loss()(pred, target, mask) == 9


def test_axes_error():
    with pytest.raises(ValueError, match="axes must be 'sum' or 'mean', got 'x'"):
        MaskedGradientLoss(axes='x')
