import threading
from concurrent.futures import ThreadPoolExecutor

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


def test_sinkhorn_keeps_samples_that_agree_on_no_prototype():
    # 100 / 0.07 apart: as probabilities the second sample was 0 everywhere
    logits = torch.tensor([[[100.0, 0.0, 1.0], [0.0, -100.0, -99.0]]])
    targets = SinkhornCentering(3)(logits, 0.07)[0]
    torch.testing.assert_close(targets.sum(-1), torch.ones(2))
    # the samples are equal up to a number added to all logits, and so are targets
    torch.testing.assert_close(targets[0], targets[1], rtol=0, atol=1e-3)


def test_sinkhorn_equals_the_plain_form_at_small_logits():
    torch.manual_seed(0)
    logits = torch.randn(2, 5, 7)
    plain = (logits.flatten(0, 1) / 0.5).exp()
    for _ in range(3):
        plain = plain / (7 * plain.sum(0))
        plain = plain / plain.sum(1, keepdim=True)
    targets = SinkhornCentering(7)(logits, 0.5)
    torch.testing.assert_close(targets.flatten(0, 1), plain)


def test_sinkhorn_over_two_processes_equals_one():
    torch.manual_seed(0)
    logits = 100 * torch.randn(2, 6, 4)
    expected = SinkhornCentering(4)(logits, 0.07)
    both_there, given = threading.Barrier(2), {}

    def run(rank: int) -> torch.Tensor:
        def all_reduce(x: torch.Tensor, op: str) -> torch.Tensor:
            given[rank] = x
            both_there.wait(10)
            both = torch.stack([given[0], given[1]])
            both_there.wait(10)
            return both.amax(0) if op == 'max' else both.sum(0)

        centering = SinkhornCentering(4)
        centering.all_reduce = all_reduce
        return centering(logits[:, 2 * rank :][:, : 2 + 2 * rank], 0.07)

    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(run, range(2)))
    torch.testing.assert_close(torch.cat(parts, 1), expected)


def test_momentum_must_be_a_share():
    with pytest.raises(ValueError, match=r'momentum 1.1 is not in \[0, 1\]'):
        EMACentering(2, momentum=1.1)
