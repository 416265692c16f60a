import pytest
import torch
from torch import nn

from sapiens2_mm.models.selfsup import EMATeacher


def make(momentum: float = 0.992) -> tuple[nn.Module, nn.Module, EMATeacher]:
    torch.manual_seed(0)
    backbone, head = nn.Sequential(nn.Linear(4, 4), nn.Dropout()), nn.Linear(4, 2)
    backbone.register_buffer('table', torch.ones(3, dtype=torch.bfloat16))
    return backbone, head, EMATeacher(backbone, head, momentum)


def test_starts_as_an_exact_copy_without_gradient():
    backbone, head, teacher = make()
    for own, other in ((teacher.backbone, backbone), (teacher.head, head)):
        for name, value in other.state_dict().items():
            assert torch.equal(own.state_dict()[name], value)
    assert not any(p.requires_grad for p in teacher.parameters())
    assert all(p.requires_grad for p in backbone.parameters())


def test_stays_in_evaluation_mode():
    teacher = make()[2]
    teacher.train()
    assert not any(module.training for module in teacher.modules())


def test_one_step_by_hand():
    backbone, head, teacher = make()
    old = teacher.head.weight.clone()
    with torch.no_grad():
        head.weight.add_(1.0)
    backbone.table.fill_(2)
    teacher.update(backbone, head)
    torch.testing.assert_close(
        teacher.head.weight, 0.992 * old + 0.008 * head.weight, rtol=0, atol=1e-7
    )
    assert teacher.backbone.table.tolist() == [2, 2, 2]


def test_momentum_grows_to_one():
    teacher = EMATeacher(nn.Linear(1, 1), nn.Linear(1, 1), 0.9, momentum_iters=100)
    quarter = 1 - 0.1 * (1 + 0.5**0.5) / 2
    found = [teacher.momentum_at(step) for step in (0, 25, 50, 100, 500)]
    assert found == pytest.approx([0.9, quarter, 0.95, 1, 1])
    student, head = nn.Linear(1, 1), nn.Linear(1, 1)
    old = teacher.head.weight.clone()
    teacher.update(student, head, torch.tensor(50))
    torch.testing.assert_close(teacher.head.weight, 0.95 * old + 0.05 * head.weight)


def test_momentum_stays_by_default():
    assert [make()[2].momentum_at(step) for step in (0, 10**6)] == [0.992, 0.992]


def test_equal_weights_do_not_move_at_all():
    backbone, head, teacher = make()
    for _ in range(20):
        teacher.update(backbone, head)
    assert torch.equal(teacher.backbone[0].weight, backbone[0].weight)


def test_copy_from_survives_unset_weights():
    backbone, head, teacher = make()
    with torch.no_grad():
        head.weight.mul_(3.3)
        teacher.head.weight.fill_(float('nan'))
    teacher.copy_from(backbone, head)
    assert torch.equal(teacher.head.weight, head.weight)


def test_momentum_must_be_a_share():
    with pytest.raises(ValueError, match=r'momentum must be in \[0, 1\], got -1'):
        make(momentum=-1)
