import pytest
import torch

from sapiens2_mm.models.selfsup import EMACentering, SinkhornCentering


def test_first_target_is_the_plain_softmax():
    centering = EMACentering(3)
    logits = torch.tensor([[[1.0, 2.0, 3.0]]])
    expected = torch.softmax(logits / 0.07, dim=-1)
    torch.testing.assert_close(centering(logits, 0.07), expected)
    assert centering.center.tolist() == [0, 0, 0]  # updated after use


def test_center_update_by_hand():
    centering = EMACentering(2, momentum=0.9)
    centering(torch.tensor([[[1.0, 0.0]], [[3.0, 2.0]]]), 0.07)  # mean (2, 1)
    centering.update()
    torch.testing.assert_close(centering.center, torch.tensor([0.2, 0.1]))
    centering(torch.tensor([[[1.0, 1.0]]]), 0.07)
    centering.update()
    torch.testing.assert_close(centering.center, torch.tensor([0.28, 0.19]))
    targets = centering(torch.tensor([[[1.0, 1.0]]]), 0.5)
    expected = torch.softmax(torch.tensor([(1 - 0.28) / 0.5, (1 - 0.19) / 0.5]), 0)
    torch.testing.assert_close(targets[0, 0], expected)


def test_accumulated_batches_count_as_one():
    torch.manual_seed(0)
    logits = torch.randn(2, 6, 4)
    whole, parts = EMACentering(4), EMACentering(4)
    whole(logits, 0.07)
    whole.update()
    for part in logits.split([1, 3, 2], dim=1):
        parts(part, 0.07)
    parts.update()
    torch.testing.assert_close(parts.center, whole.center)


def test_unequal_processes_are_weighted_by_their_samples():
    torch.manual_seed(0)
    logits = torch.randn(2, 5, 4)
    whole = EMACentering(4)
    whole(logits, 0.07)
    whole.update()
    first, second = EMACentering(4), EMACentering(4)
    first(logits[:, :1], 0.07)
    second(logits[:, 1:], 0.07)
    other = second.pending.clone()
    first.all_reduce = lambda x, op: x + other
    first.update()
    torch.testing.assert_close(first.center, whole.center)


def test_evaluation_does_not_move_the_center():
    centering = EMACentering(2).eval()
    centering(torch.ones(1, 1, 2), 0.07)
    assert float(centering.pending.abs().sum()) == 0


def test_only_the_center_is_stored():
    assert list(EMACentering(2).state_dict()) == ['center']
    assert not SinkhornCentering(2).state_dict()


def test_sinkhorn_uses_all_prototypes_equally():
    torch.manual_seed(0)
    logits = torch.randn(2, 32, 8)
    logits[..., 0] += 3  # all would choose the first
    targets = SinkhornCentering(8, num_iters=30)(logits, 1.0)
    assert targets.shape == (2, 32, 8)
    torch.testing.assert_close(targets.sum(-1), torch.ones(2, 32))
    torch.testing.assert_close(targets.sum((0, 1)), torch.full((8,), 8.0), rtol=0.01,
                               atol=0.01)  # fmt: skip


def test_sinkhorn_by_hand():
    # exp of the logits is [[1, 1], [3, 1]]: columns /4, /2, then rows sum to one
    logits = torch.tensor([[[0.0, 0.0], [3.0, 1.0]]])
    logits[0, 1] = logits[0, 1].log()
    targets = SinkhornCentering(2, num_iters=1)(logits, 1.0)
    expected = torch.tensor([[1 / 4, 1 / 2], [3 / 4, 1 / 2]])
    expected = expected / expected.sum(1, keepdim=True)
    torch.testing.assert_close(targets[0], expected)


def test_sinkhorn_survives_large_logits():
    logits = torch.tensor([[[1e4, 0.0, 0.0], [1e4, 0.0, 0.0]]])
    targets = SinkhornCentering(3)(logits, 0.07)
    assert torch.isfinite(targets).all()
    torch.testing.assert_close(targets.sum(-1), torch.ones(1, 2))


def test_momentum_must_be_a_share():
    with pytest.raises(ValueError, match=r'momentum 1.1 is not in \[0, 1\]'):
        EMACentering(2, momentum=1.1)
