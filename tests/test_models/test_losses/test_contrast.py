import math

import pytest
import torch

from sapiens2_mm.models.losses import ViewContrastLoss
from sapiens2_mm.models.losses.contrast import (
    cross_view_entropy,
    linear_ramp,
    target_entropies,
    view_pairs,
)


def test_pairs_of_six_and_two_views():
    pairs = view_pairs(6, 2)
    assert len(pairs) == len(set(pairs)) == 10
    assert set(pairs[:2]) == {(0, 1), (1, 0)}
    assert set(pairs) - {(0, 1), (1, 0)} == {
        (i, j) for i in range(2, 6) for j in (0, 1)
    }


@pytest.mark.parametrize(
    ('targets', 'entropy', 'of_mean'),
    [
        ([[[1, 0, 0, 0], [0, 1, 0, 0]]], 0, math.log(2)),  # one prototype each
        ([[[1, 0, 0, 0]], [[1, 0, 0, 0]]], 0, 0),  # the same one for all
        ([[[0.25] * 4, [0.25] * 4]], math.log(4), math.log(4)),  # uniform
        ([[[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]]], math.log(2), math.log(4)),
    ],
)
def test_entropies_of_targets_by_hand(targets, entropy, of_mean):
    found = target_entropies(torch.tensor(targets, dtype=torch.float))
    assert [float(value) for value in found] == pytest.approx([entropy, of_mean])


def test_equals_a_plain_double_loop():
    torch.manual_seed(0)
    student = torch.randn(6, 3, 7)
    targets = torch.softmax(torch.randn(2, 3, 7), dim=-1)
    total = 0.0
    for i, j in view_pairs(6, 2):
        for b in range(3):
            log_p = torch.log_softmax(student[i, b] / 0.1, dim=0)
            total -= float((targets[j, b] * log_p).sum()) / 3
    loss = cross_view_entropy(student, targets, 0.1)
    torch.testing.assert_close(float(loss), total / 10)


def test_equals_the_entropy_where_student_and_teacher_agree():
    torch.manual_seed(0)
    logits = torch.randn(1, 3, 7).expand(6, 3, 7)
    targets = torch.softmax(logits[:2] / 0.1, dim=-1)
    entropy = torch.special.entr(targets).sum(-1).mean()
    torch.testing.assert_close(cross_view_entropy(logits, targets, 0.1), entropy)


def test_gradient_reaches_all_student_views():
    torch.manual_seed(0)
    student = torch.randn(6, 2, 5, requires_grad=True)
    targets = torch.softmax(torch.randn(2, 2, 5), dim=-1)
    ViewContrastLoss()(student, targets).backward()
    assert (student.grad.abs().sum((1, 2)) > 0).all()


@pytest.mark.parametrize(
    ('step', 'expected'), [(0, 0.065), (500, 0.0675), (1000, 0.07), (5000, 0.07)]
)
def test_teacher_temperature(step, expected):
    assert ViewContrastLoss().teacher_temperature_at(step) == pytest.approx(expected)


def test_ramp_of_length_zero():
    assert linear_ramp(0, 1.0, 2.0, 0) == 2.0


def test_weight_and_precision():
    student = torch.zeros(3, 2, 4, dtype=torch.bfloat16)
    targets = torch.full((2, 2, 4), 0.25)
    loss = ViewContrastLoss(loss_weight=0.4)(student, targets)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, 0.4 * torch.tensor(4.0).log())


@pytest.mark.parametrize('student, teacher', [(0, (0.1, 0.1)), (0.1, (0.1, -0.1))])
def test_temperatures_are_positive(student, teacher):
    with pytest.raises(ValueError, match=r'must be positive, got \(0'):
        ViewContrastLoss(student, teacher)
