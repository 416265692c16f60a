"""What all losses of normals, pointmaps, albedo, depth and mattes have in common."""

import pytest
import torch
from dense_maps import arguments, some_maps
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
# these mix valid pixels with their neighbors outside, as the reference does
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


def test_the_name_must_say_that_it_is_a_loss():
    with pytest.raises(ValueError, match='loss_name must contain "loss"'):
        MaskedL1Loss(loss_name='l1')
