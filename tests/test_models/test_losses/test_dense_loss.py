"""Losses of normals, pointmaps, albedo, depth and mattes."""

from math import log

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from sapiens2_mm.models.losses import (
    ChromaticityLoss,
    IntrinsicsLoss,
    LowFrequencyL1Loss,
    MaskedGradientLoss,
    MaskedL1Loss,
    MaskedL2Loss,
    MattingGradientLoss,
    MattingL1Loss,
    MattingLaplacianLoss,
    MultiscaleL1Loss,
    NormalCosineLoss,
    PointmapNormalLoss,
    RGBMeanLoss,
    ScaleL1Loss,
    ShiftInvariantL1Loss,
    SILogLoss,
)

# loss -> its name in the reference file and the inputs it takes there
REFERENCE = {
    'l1_normal': (MaskedL1Loss(), 'normal'),
    'normal_cosine': (NormalCosineLoss(), 'normal'),
    'normal_grad': (MaskedGradientLoss(), 'normal'),
    'albedo_grad': (MaskedGradientLoss(axes='mean'), 'albedo'),
    'albedo_chroma': (ChromaticityLoss(), 'albedo'),
    'albedo_lowfreq_16': (LowFrequencyL1Loss(window=16), 'albedo'),
    'multiscale_l1_2_pointmap': (MultiscaleL1Loss(scale_factor=2), 'pointmap'),
    'multiscale_l1_4_pointmap': (MultiscaleL1Loss(scale_factor=4), 'pointmap'),
    'pointmap_shift_invariant': (ShiftInvariantL1Loss(), 'pointmap'),
    'pointmap_intrinsics': (IntrinsicsLoss(), 'geometry'),
    'pointmap_normal': (PointmapNormalLoss(), 'geometry'),
    'silog_depth': (SILogLoss(), 'depth'),
    'pointmap_scale_l1': (ScaleL1Loss(), 'scale'),
}
# losses called as loss(pred, target, mask)
MASKED = [
    MaskedL1Loss(),
    MaskedL2Loss(),
    MaskedGradientLoss(),
    NormalCosineLoss(),
    ChromaticityLoss(),
    LowFrequencyL1Loss(window=16),
    RGBMeanLoss(),
    MultiscaleL1Loss(within_mask=True),
    ShiftInvariantL1Loss(),
    SILogLoss(),
    MattingL1Loss(),
    MattingGradientLoss(),
    MattingLaplacianLoss(levels=3),
]
GEOMETRY = [IntrinsicsLoss(), PointmapNormalLoss(neighbors_in_mask=True)]
# these mix valid pixels with their neighbours outside, as the reference does
MIXING = [MultiscaleL1Loss(), PointmapNormalLoss()]


def loss_id(loss):
    return type(loss).__name__ if isinstance(loss, torch.nn.Module) else None


@pytest.fixture(scope='module')
def reference(data_dir):
    return load_file(data_dir / 'losses_dense.safetensors')


def call(loss, kind, inputs, pred):
    """Call a loss on the reference inputs with ``pred`` as the prediction."""
    mask = inputs['in.mask'] > 0
    if kind == 'scale':
        return loss(pred, inputs['in.scale_gt'])
    if kind == 'depth':
        return loss(pred[:, 2:], inputs['in.pointmap_gt'][:, 2:], mask)
    if kind == 'geometry':
        camera = (inputs['in.intrinsics'], inputs['in.scale_gt'])
        return loss(pred, inputs['in.pointmap_gt'], mask, *camera)
    return loss(pred, inputs[f'in.{kind}_gt'], mask)


def prediction(kind, inputs):
    name = {'depth': 'pointmap', 'geometry': 'pointmap'}.get(kind, kind)
    return inputs[f'in.{name}_pred'].clone().requires_grad_()


@pytest.mark.parametrize('name', REFERENCE)
def test_value_and_gradient_equal_the_reference(name, reference):
    loss, kind = REFERENCE[name]
    pred = prediction(kind, reference)
    value = call(loss, kind, reference, pred)
    (gradient,) = torch.autograd.grad(value, pred)
    torch.testing.assert_close(value, reference[f'loss.{name}'][0], rtol=1e-5, atol=0)
    expected = reference[f'grad.{name}']
    tolerance = 1e-5 * expected.abs().max().item()
    torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=tolerance)


@pytest.mark.parametrize('name', REFERENCE)
def test_autocast_does_not_touch_the_loss(name, reference):
    loss, kind = REFERENCE[name]
    with torch.autocast('cpu', torch.bfloat16):
        value = call(loss, kind, reference, prediction(kind, reference))
        half = call(loss, kind, reference, prediction(kind, reference).bfloat16())
    assert value.dtype == half.dtype == torch.float32
    torch.testing.assert_close(value, reference[f'loss.{name}'][0], rtol=1e-5, atol=0)
    torch.testing.assert_close(half, value, rtol=0.05, atol=0.01)


def some_maps(channels=3, size=(64, 48)):
    generator = torch.Generator().manual_seed(0)
    pred = 0.8 * torch.rand(2, channels, *size, generator=generator) + 0.1
    target = 0.8 * torch.rand(2, channels, *size, generator=generator) + 0.1
    mask = torch.rand(2, 1, *size, generator=generator) > 0.3
    return pred.requires_grad_(), target, mask


def arguments(loss, pred, target, mask):
    if isinstance(loss, (IntrinsicsLoss, PointmapNormalLoss)):
        camera = torch.tensor([[50.0, 0, 24], [0, 50, 32], [0, 0, 1]]).repeat(2, 1, 1)
        return pred, target, mask, camera, torch.full((2, 1), 1.5)
    return pred, target, mask


@pytest.mark.parametrize('loss', MASKED + GEOMETRY + MIXING, ids=loss_id)
def test_empty_mask_is_zero_with_a_graph(loss):
    pred, target, mask = some_maps()
    value = loss(*arguments(loss, pred, target, torch.zeros_like(mask)))
    assert value == 0
    value.backward()
    assert (pred.grad == 0).all()


@pytest.mark.parametrize('loss', MASKED + GEOMETRY, ids=loss_id)
@pytest.mark.parametrize('junk', [float('nan'), float('inf'), -1000.0])
def test_target_outside_the_mask_is_never_seen(loss, junk):
    results = []
    for value in (0.0, junk):
        pred, target, mask = some_maps()
        filled = torch.where(mask, target, torch.tensor(value))
        loss_value = loss(*arguments(loss, pred, filled, mask))
        loss_value.backward()
        results.append((loss_value.detach(), pred.grad))
    (value, gradient), (expected, expected_gradient) = results
    assert value.isfinite() and gradient.isfinite().all()
    assert value == expected and (gradient == expected_gradient).all()


@pytest.mark.parametrize('loss', MIXING, ids=loss_id)
def test_unknown_target_values_stay_out(loss):
    pred, target, mask = some_maps()
    target = torch.where(mask, target, torch.tensor(float('nan')))
    value = loss(*arguments(loss, pred, target, mask))
    value.backward()
    assert value > 0 and value.isfinite() and pred.grad.isfinite().all()


@pytest.mark.parametrize('loss', MASKED + GEOMETRY + MIXING, ids=loss_id)
def test_perfect_prediction(loss):
    _, target, mask = some_maps()
    pred = target.clone().requires_grad_()
    value = loss(*arguments(loss, pred, target, mask))
    value.backward()
    assert pred.grad.isfinite().all()
    if not isinstance(loss, IntrinsicsLoss):  # random points are on no pixel's ray
        assert value.abs() < 1e-5


@pytest.mark.parametrize('loss', MASKED, ids=loss_id)
def test_one_pixel_mask(loss):
    pred, target, mask = some_maps()
    mask = torch.zeros_like(mask)
    mask[0, 0, 5, 5] = True
    value = loss(pred, target, mask)
    value.backward()
    assert value.isfinite() and pred.grad.isfinite().all()


def test_weight_and_bound():
    pred, target, mask = some_maps()
    plain = MaskedL1Loss()(pred, target, mask)
    assert MaskedL1Loss(loss_weight=3.0)(pred, target, mask) == 3 * plain
    bounded = MaskedL1Loss(loss_weight=1e4, max_value=4.0)(pred, target, mask)
    bounded.backward()
    assert bounded == 4 and (pred.grad == 0).all()


@pytest.mark.parametrize('loss', MASKED + GEOMETRY + MIXING, ids=loss_id)
@pytest.mark.parametrize('where', ['prediction', 'target'])
def test_what_is_not_finite_is_never_hidden(loss, where):
    """One NaN at a pixel that counts makes the loss NaN, bounded or not."""
    if where == 'target' and isinstance(loss, IntrinsicsLoss):
        return  # it does not look at the target
    pred, target, mask = some_maps()
    mask = torch.ones_like(mask)
    broken = pred.detach().clone() if where == 'prediction' else target
    broken[0, 0, 5, 5] = float('nan')
    pred = broken if where == 'prediction' else pred
    assert loss(*arguments(loss, pred, target, mask)).isnan()


@pytest.mark.parametrize('value', [float('nan'), float('inf')])
def test_the_bound_keeps_what_is_not_finite(value):
    pred, target, mask = some_maps()
    loss = MaskedL1Loss(max_value=4.0)(torch.full_like(pred, value), target, mask)
    assert not loss.isfinite()


def test_l2_is_the_squared_distance():
    pred = torch.zeros(1, 3, 1, 2)
    target = torch.tensor([1.0, 2, 2]).reshape(1, 3, 1, 1).repeat(1, 1, 1, 2)
    target[..., 1] = 50
    mask = torch.tensor([[[[True, False]]]])
    assert MaskedL2Loss()(pred, target, mask) == 9


def test_rgb_mean_is_blind_to_the_place_of_a_colour():
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


def test_silog_ignores_part_of_a_common_factor():
    target = torch.rand(2, 1, 8, 6) + 0.5
    mask = torch.ones_like(target, dtype=torch.bool)
    value = SILogLoss()(target * 2, target, mask)
    assert value == pytest.approx(0.5**0.5 * log(2), rel=1e-5)
    assert SILogLoss(variance_focus=1.0)(target * 2, target, mask) < 1e-3


def test_intrinsics_loss_is_zero_on_the_rays():
    rows, cols = torch.meshgrid(torch.arange(64.0), torch.arange(48.0), indexing='ij')
    z = torch.rand(2, 64, 48) + 1
    points = torch.stack([(cols - 24) * z / 50, (rows - 32) * z / 50, z], 1)
    _, _, mask = some_maps()
    value = IntrinsicsLoss()(*arguments(IntrinsicsLoss(), points, points, mask))
    assert value < 1e-6


def test_pointmap_normal_option_leaves_the_outline_out():
    """A wrong prediction outside the mask matters only without the option."""
    _, target, _ = some_maps()
    mask = torch.zeros(2, 1, 64, 48, dtype=torch.bool)
    mask[..., 10:40, 10:30] = True
    pred = torch.where(mask, target, target + 5)
    for neighbors, expected in ((False, False), (True, True)):
        loss = PointmapNormalLoss(neighbors_in_mask=neighbors)
        assert (loss(*arguments(loss, pred, target, mask)) < 1e-5) == expected


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


def test_errors():
    pred, target, mask = some_maps()
    with pytest.raises(ValueError, match='loss_name must contain "loss"'):
        MaskedL1Loss(loss_name='l1')
    with pytest.raises(ValueError, match="axes must be 'sum' or 'mean', got 'x'"):
        MaskedGradientLoss(axes='x')
    with pytest.raises(ValueError, match='64x48 pixels must be a multiple of window 7'):
        LowFrequencyL1Loss(window=7)(pred, target, mask)
    with pytest.raises(ValueError, match='6 levels need sides of at least 65 pixels'):
        MattingLaplacianLoss(levels=6)(pred, target, mask)
