from functools import partial
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from sapiens2_mm.models.losses import WeightedCrossEntropyLoss
from sapiens2_mm.models.losses import weighted_cross_entropy as module
from sapiens2_mm.models.losses.pixel_chunks import pixel_chunks
from sapiens2_mm.models.losses.weighted_cross_entropy import weighted_cross_entropy

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
def test_equals_the_released_loss(name, weighted, first_row, average):
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


def test_bf16_logits_are_computed_in_float32():
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


def test_errors():
    logits = torch.zeros(1, 3, 2, 2)
    labels = torch.zeros(1, 2, 2, dtype=torch.long)
    with pytest.raises(ValueError, match=r"'pixels' or 'class_weight', got 'mean'"):
        WeightedCrossEntropyLoss(average='mean')
    with pytest.raises(ValueError, match='2 class weights for 3 classes'):
        WeightedCrossEntropyLoss([1.0, 2.0])(logits, labels)
    with pytest.raises(ValueError, match='no pixel weights; remove the sampler'):
        WeightedCrossEntropyLoss()(logits, labels, weight=torch.ones(1, 2, 2))
    with pytest.raises(ValueError, match=r'labels 0 to 2 or 255.*got \[7\]'):
        WeightedCrossEntropyLoss()(logits, labels + 7)
    with pytest.raises(ValueError, match=r'\(1, 3, 2, 2\) and \(1, 1, 2, 2\)'):
        WeightedCrossEntropyLoss()(logits, labels[:, None])
