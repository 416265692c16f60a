from functools import partial
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from sapiens2_mm.models.losses import Sapiens2DiceLoss, WeightedCrossEntropyLoss
from sapiens2_mm.models.losses import seg as module
from sapiens2_mm.models.losses.seg import (
    dice_loss,
    pixel_chunks,
    weighted_cross_entropy,
)

DATA = Path(__file__).parents[2] / 'data'
CASE = load_file(DATA / 'losses_seg.safetensors')
GRAD = load_file(DATA / 'losses_seg_grad.safetensors')


@pytest.mark.parametrize(
    'name, weighted, first_row, average',
    [
        ('seg_ce', False, 0, 'pixels'),
        ('seg_ce_as_configured', True, 0, 'pixels'),
        ('seg_ce_class_weight', True, 5, 'class_weight'),
    ],
)
def test_cross_entropy_equals_the_released_loss(name, weighted, first_row, average):
    logits = CASE['in.seg_logits'].clone().requires_grad_()
    loss = weighted_cross_entropy(
        logits[:, :, first_row:],
        CASE['in.seg_gt'][:, first_row:],
        CASE['in.seg_class_weight'] if weighted else None,
        average=average,
    )
    loss.backward()
    assert loss.item() == pytest.approx(CASE[f'loss.{name}'].item(), abs=1e-5)
    torch.testing.assert_close(logits.grad, GRAD[f'grad.{name}'], atol=1e-8, rtol=1e-5)


def test_by_hand_and_ignored_pixels_count_in_the_mean():
    logits = torch.zeros(1, 2, 1, 4)
    labels = torch.tensor([[[0, 1, 255, 255]]])
    weight = torch.tensor([1.0, 3.0])
    log2 = torch.tensor(2.0).log()
    loss = weighted_cross_entropy(logits, labels, weight)
    torch.testing.assert_close(loss, (1 + 3) * log2 / 4)
    loss = weighted_cross_entropy(logits, labels, weight, average='class_weight')
    torch.testing.assert_close(loss, log2)


@pytest.mark.parametrize('average', ['pixels', 'class_weight'])
@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16])
def test_all_ignored_is_zero_with_a_graph(average, dtype):
    logits = torch.randn(2, 3, 4, 5, dtype=dtype, requires_grad=True)
    labels = torch.full((2, 4, 5), 255)
    loss = weighted_cross_entropy(logits, labels, torch.ones(3), average=average)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_cross_entropy_of_bf16_logits_is_computed_in_float32():
    torch.manual_seed(0)
    logits = torch.randn(2, 5, 8, 6).bfloat16().requires_grad_()
    labels = torch.randint(0, 5, (2, 8, 6))
    exact = logits.detach().float().requires_grad_()
    F.cross_entropy(exact, labels).backward()
    with torch.autocast('cpu', torch.bfloat16):
        loss = weighted_cross_entropy(logits, labels)
    loss.backward()
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, F.cross_entropy(exact, labels))
    torch.testing.assert_close(logits.grad, exact.grad.bfloat16())


def test_pieces_do_not_change_the_result(monkeypatch):
    torch.manual_seed(0)
    logits = torch.randn(2, 4, 7, 5, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(0, 4, (2, 7, 5))
    whole = weighted_cross_entropy(logits, labels)
    pieces = partial(pixel_chunks, max_elements=45)
    monkeypatch.setattr(module, 'pixel_chunks', pieces)
    torch.testing.assert_close(weighted_cross_entropy(logits, labels), whole)


def test_module_scales_names_and_follows_the_device():
    loss = WeightedCrossEntropyLoss([1.0, 3.0], loss_weight=2.0, loss_name='loss_x')
    logits = torch.zeros(1, 2, 1, 2)
    value = loss(logits, torch.tensor([[[0, 1]]]))
    torch.testing.assert_close(value, 2 * 2 * torch.tensor(2.0).log())
    assert loss.loss_name == 'loss_x'
    assert not loss.state_dict()
    with torch.device('meta'):
        on_meta = WeightedCrossEntropyLoss([1.0, 3.0])
    torch.testing.assert_close(on_meta(logits, torch.tensor([[[0, 1]]])), value / 2)


def test_cross_entropy_errors():
    logits = torch.zeros(1, 3, 2, 2)
    labels = torch.zeros(1, 2, 2, dtype=torch.long)
    with pytest.raises(ValueError, match=r"average must be one of .*, got 'mean'"):
        WeightedCrossEntropyLoss(average='mean')
    with pytest.raises(ValueError, match='no pixel weights; remove the sampler'):
        WeightedCrossEntropyLoss()(logits, labels, weight=torch.ones(1, 2, 2))
    for number in (2, 4):
        with pytest.raises(ValueError, match=f'{number} numbers in class_weight, 3 cl'):
            WeightedCrossEntropyLoss([1.0] * number)(logits, labels)


@pytest.mark.parametrize('loss', [WeightedCrossEntropyLoss(), Sapiens2DiceLoss()])
@pytest.mark.parametrize(
    ('labels', 'message'),
    [
        ([[[0, 3]]], r'no class and not 255: \[3\]'),
        ([[[0, -1]]], r'no class and not 255: \[-1\]'),
        ([[[0, 1], [1, 0]]], r'labels \(1, 2, 2\) do not fit logits \(1, 3, 1, 2\)'),
        ([[[[0, 1]]]], r'labels \(1, 1, 1, 2\) do not fit'),
    ],
)
def test_labels_that_do_not_fit(loss, labels, message):
    with pytest.raises(ValueError, match=message):
        loss(torch.zeros(1, 3, 1, 2), torch.tensor(labels))


@pytest.mark.parametrize(
    'name, background', [('seg_dice', False), ('seg_dice_with_background', True)]
)
def test_dice_equals_the_released_loss(name, background):
    logits = CASE['in.seg_logits'].clone().requires_grad_()
    loss = dice_loss(logits, CASE['in.seg_gt'], include_background=background)
    loss.backward()
    assert loss.item() == pytest.approx(CASE[f'loss.{name}'].item(), abs=1e-5)
    torch.testing.assert_close(logits.grad, GRAD[f'grad.{name}'], atol=1e-9, rtol=1e-5)


def test_dice_gradient_is_the_derivative():
    torch.manual_seed(0)
    logits = torch.randn(2, 4, 5, 3, requires_grad=True)
    labels = torch.randint(0, 4, (2, 5, 3))
    labels[0, 0] = 255
    dice_loss(logits, labels).backward()
    step = torch.randn_like(logits)
    with torch.no_grad():
        ends = [dice_loss(logits + e * step, labels) for e in (-1e-2, 1e-2)]
    slope = (ends[1] - ends[0]) / 2e-2
    torch.testing.assert_close((logits.grad * step).sum(), slope, atol=1e-5, rtol=1e-3)


def test_dice_by_hand():
    # Even probabilities, class 1 on one of two valid pixels.
    logits = torch.zeros(1, 2, 1, 3)
    labels = torch.tensor([[[0, 1, 255]]])
    expected = 1 - (2 * 0.5 + 1e-3) / (0.5 + 1 + 1e-3)
    assert dice_loss(logits, labels).item() == pytest.approx(expected, abs=1e-6)


def test_sample_without_foreground_stays_in_the_batch_mean():
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 4, 4)
    labels = torch.randint(1, 3, (2, 4, 4))
    alone = dice_loss(logits[:1], labels[:1])
    labels[1] = 0
    torch.testing.assert_close(dice_loss(logits, labels), alone / 2)


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16])
@pytest.mark.parametrize('fill', [255, 0])
def test_nothing_to_score_is_zero_with_a_graph(fill, dtype):
    logits = torch.randn(2, 3, 4, 5, dtype=dtype, requires_grad=True)
    loss = dice_loss(logits, torch.full((2, 4, 5), fill))
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_dice_of_bf16_logits_is_computed_in_float32():
    torch.manual_seed(0)
    logits = torch.randn(2, 5, 8, 6).bfloat16().requires_grad_()
    labels = torch.randint(0, 5, (2, 8, 6))
    exact = logits.detach().float().requires_grad_()
    dice_loss(exact, labels).backward()
    with torch.autocast('cpu', torch.bfloat16):
        loss = dice_loss(logits, labels)
    loss.backward()
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, dice_loss(exact, labels))
    torch.testing.assert_close(logits.grad, exact.grad.bfloat16())


def test_dice_module_and_its_error():
    logits, labels = CASE['in.seg_logits'], CASE['in.seg_gt']
    loss = Sapiens2DiceLoss(loss_weight=3.0)
    torch.testing.assert_close(loss(logits, labels), 3 * dice_loss(logits, labels))
    with pytest.raises(ValueError, match='no pixel weights; remove the sampler'):
        loss(logits, labels, weight=torch.ones(2, 64, 48))
    for smooth in (0, -1):
        with pytest.raises(ValueError, match=f'must be positive, got {smooth}'):
            Sapiens2DiceLoss(smooth=smooth)
