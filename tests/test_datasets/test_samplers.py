from itertools import islice

import pytest

from sapiens2_mm.datasets import DrawSampler
from sapiens2_mm.registry import DATA_SAMPLERS


def take(sampler: DrawSampler, count: int) -> list[tuple[int, int]]:
    return list(islice(iter(sampler), count))


def test_passes_are_complete_and_differ():
    sampler = DATA_SAMPLERS.build(
        dict(type='sapiens2_mm.DrawSampler', dataset=range(7), seed=None)
    )
    drawn = take(sampler, 21)
    assert [draw for _, draw in drawn] == list(range(21))
    passes = [[index for index, _ in drawn[7 * n :][:7]] for n in range(3)]
    assert all(sorted(one) == list(range(7)) for one in passes)
    assert passes[0] != passes[1] != passes[2]
    assert len(sampler) == 7


def test_seek_continues_the_same_order():
    straight = take(DrawSampler(range(7)), 20)
    sampler = DrawSampler(range(7))
    sampler.seek(11)
    assert take(sampler, 9) == straight[11:]


@pytest.mark.parametrize('count', [0, 4])
def test_processes_share_a_pass(monkeypatch, count):
    both = []
    for rank in range(2):
        monkeypatch.setattr(
            'sapiens2_mm.datasets.samplers.get_dist_info', lambda rank=rank: (rank, 2)
        )
        sampler = DrawSampler(range(8))
        sampler.seek(count)
        both += take(sampler, 8)
    single = DrawSampler(range(8))
    monkeypatch.undo()
    single.rank, single.world_size = 0, 1
    single.seek(2 * count)
    assert sorted(both, key=lambda pair: pair[1]) == take(single, 16)


def test_without_shuffle():
    assert take(DrawSampler(range(3), shuffle=False), 4) == [
        (0, 0), (1, 1), (2, 2), (0, 3),
    ]  # fmt: skip


def test_seeds_differ():
    assert take(DrawSampler(range(50)), 50) != take(DrawSampler(range(50), seed=1), 50)
