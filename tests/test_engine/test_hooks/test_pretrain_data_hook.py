import logging
from types import SimpleNamespace

import pytest

from sapiens2_mm.engine.hooks import PretrainDataHook


def runner(resume: bool, seeks: list) -> SimpleNamespace:
    dataset = SimpleNamespace(seek=lambda *args: seeks.append(args))
    return SimpleNamespace(
        _resume=resume,
        train_dataloader=SimpleNamespace(dataset=dataset),
        logger=logging.getLogger('hook'),
    )


def checkpoint(processes: int) -> dict:
    positions = [[[1, n], [2, n]] for n in range(processes)]
    return dict(shard_positions=positions, meta=dict(iter=7))


def test_positions_go_to_the_dataset():
    seeks: list = []
    PretrainDataHook().after_load_checkpoint(runner(True, seeks), checkpoint(1))
    assert seeks == [([(1, 0), (2, 0)], 7)]


def test_weights_alone_do_not_seek():
    seeks: list = []
    PretrainDataHook().after_load_checkpoint(runner(False, seeks), checkpoint(1))
    assert seeks == []


def test_a_checkpoint_without_positions(caplog):
    seeks: list = []
    PretrainDataHook().after_load_checkpoint(runner(True, seeks), dict(meta={}))
    assert seeks == [] and 'read from the beginning' in caplog.text


def test_another_number_of_processes_cannot_continue():
    with pytest.raises(ValueError, match='had 3 processes, this one has 1; start as'):
        PretrainDataHook().after_load_checkpoint(runner(True, []), checkpoint(3))
