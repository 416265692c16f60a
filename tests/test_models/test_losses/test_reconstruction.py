import pytest
import torch

from sapiens2_mm.models.losses import PatchReconstructionLoss
from sapiens2_mm.models.losses.reconstruction import (
    masked_patch_mse,
    patch_statistics,
    patchify,
    unpatchify,
)


def test_patches_are_row_by_row_and_invertible():
    images = torch.arange(2 * 3 * 8 * 4.0).view(2, 3, 8, 4)
    patches = patchify(images, 4)
    assert patches.shape == (2, 2, 48)
    assert torch.equal(patches[0, 1].view(3, 4, 4), images[0, :, 4:])
    assert torch.equal(unpatchify(patches, (2, 1), 4), images)


def test_statistics_are_over_all_channels():
    patches = torch.tensor([[[0.0, 0.0, 3.0, 3.0]]])
    mean, std = patch_statistics(patches)
    assert float(mean) == 1.5
    torch.testing.assert_close(float(std), (3.0 + 1e-6) ** 0.5)


def test_visible_patches_do_not_count():
    torch.manual_seed(0)
    pred = torch.randn(2, 4, 6, requires_grad=True)
    target = torch.randn(2, 4, 6)
    mask = torch.tensor([[True, False, True, False], [False, True, True, False]])
    loss = masked_patch_mse(pred, target, mask)
    by_hand = [(pred[b, n] - target[b, n]).square().mean()
               for b in range(2) for n in range(4) if mask[b, n]]  # fmt: skip
    torch.testing.assert_close(loss, torch.stack(by_hand).mean())
    loss.backward()
    assert float(pred.grad[~mask].abs().max()) == 0
    assert (pred.grad[mask].abs().sum(-1) > 0).all()


def test_zero_for_the_normalized_target():
    torch.manual_seed(0)
    views = torch.randn(2, 3, 32, 16) * 5 + 2
    patches = patchify(views, 16)
    mean, std = patch_statistics(patches)
    mask = torch.tensor([[True, False], [False, True]])
    loss = PatchReconstructionLoss()((patches - mean) / std, views, mask, (2, 1))
    assert float(loss) == 0
    half = PatchReconstructionLoss(loss_weight=0.5)
    pred = torch.zeros_like(patches)
    # a normalized patch has unbiased variance 1: its mean square is (P - 1) / P
    torch.testing.assert_close(
        float(half(pred, views, mask, (2, 1))), 0.5 * 767 / 768, rtol=1e-4, atol=0
    )


def test_a_constant_patch_is_finite():
    views = torch.full((1, 3, 16, 16), 2.0)
    pred = torch.zeros(1, 1, 768, requires_grad=True)
    loss = PatchReconstructionLoss()(pred, views, torch.ones(1, 1).bool(), (1, 1))
    assert float(loss) == 0


def test_half_size_target_has_32_pixel_patches_for_64_pixel_tokens():
    views = torch.randn(1, 3, 128, 64)
    loss = PatchReconstructionLoss(target_scale=0.5)
    assert loss.raw_patches(views, (2, 1)).shape == (1, 2, 3 * 32 * 32)


def test_float32_under_autocast():
    views = torch.randn(1, 3, 16, 16)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        loss = PatchReconstructionLoss()(
            torch.zeros(1, 1, 768, dtype=torch.bfloat16),
            views,
            torch.ones(1, 1).bool(),
            (1, 1),
        )
    assert loss.dtype == torch.float32


@pytest.mark.parametrize('scale', [0, -0.5, 2, float('nan')])
def test_target_is_at_most_as_large_as_the_view(scale):
    with pytest.raises(ValueError, match=rf'target_scale {scale} is not in \(0, 1'):
        PatchReconstructionLoss(target_scale=scale)


def test_errors():
    loss, mask = PatchReconstructionLoss(), torch.ones(1, 2).bool()
    with pytest.raises(ValueError, match=r'target is \(1, 2, 768\).*set out_channels'):
        loss(torch.zeros(1, 2, 48), torch.zeros(1, 3, 32, 16), mask, (2, 1))
    loss = PatchReconstructionLoss(target_scale=0.3)
    with pytest.raises(
        ValueError, match=r'grid=\(2, 1\) does not divide size=\(10, 6\)'
    ):
        loss(torch.zeros(1, 2, 75), torch.zeros(1, 3, 32, 20), mask, (2, 1))
