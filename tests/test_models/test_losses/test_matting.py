import pytest
import torch
import torch.nn.functional as F

from sapiens2_mm.models.losses import (
    MattingGradientLoss,
    MattingL1Loss,
    MattingLaplacianLoss,
)


def test_matting_losses_average_over_all_elements():
    pred = torch.zeros(1, 1, 64, 48)
    target = torch.ones_like(pred)
    mask = torch.zeros_like(pred, dtype=torch.bool)
    mask[..., :16, :] = True
    assert MattingL1Loss()(pred, target, mask) == 0.25
    everywhere = torch.ones_like(mask)
    assert MattingGradientLoss()(pred, target, everywhere) == 0  # no edge in either
    # a constant difference has no detail at any level
    assert MattingLaplacianLoss(levels=3)(pred, target, everywhere) < 1e-6


def test_sobel_gradient_of_a_ramp():
    ramp = torch.arange(48.0).repeat(1, 1, 64, 1) / 48
    value = MattingGradientLoss()(
        ramp, torch.zeros_like(ramp), torch.ones_like(ramp, dtype=torch.bool)
    )
    inner = (8 / 48) ** 2  # inside; the reflected first and last column have none
    expected = ((inner + 1e-6) ** 0.5 - 1e-3) * 46 / 48
    assert value == pytest.approx(expected, rel=1e-4)


def test_laplacian_weights_levels():
    """Against the same pyramid written out level by level."""
    generator = torch.Generator().manual_seed(0)
    pred = torch.rand(1, 1, 64, 48, generator=generator)
    target = torch.rand(1, 1, 64, 48, generator=generator)
    taps = torch.tensor([1.0, 4, 6, 4, 1]) / 16
    kernel = (taps[:, None] * taps)[None, None]
    total, current = 0.0, pred - target
    for level in range(3):
        blurred = F.conv2d(F.pad(current, (2, 2, 2, 2), 'reflect'), kernel)
        small = F.avg_pool2d(blurred, 2, ceil_mode=True)
        up = F.interpolate(small, size=current.shape[-2:], mode='bilinear')
        total += 2**level * (current - up).abs().mean() / 3
        current = small
    mask = torch.ones_like(pred, dtype=torch.bool)
    value = MattingLaplacianLoss(levels=3)(pred, target, mask)
    assert value == pytest.approx(total.item(), rel=1e-5)


def test_map_too_small_for_the_levels():
    matte = torch.zeros(1, 1, 64, 8)
    with pytest.raises(ValueError, match='levels=3 need sides > 8 pixels, got 8'):
        MattingLaplacianLoss(levels=3)(matte, matte, torch.ones_like(matte).bool())
