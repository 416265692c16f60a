import logging
from types import SimpleNamespace

import pytest
import torch

from sapiens2_mm.engine.hooks import PretrainDataHook
from sapiens2_mm.engine.hooks.pretrain_data_hook import worker_memory


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


def test_memory_of_a_loader_worker():
    views = [torch.zeros(2, 3, 1024, 768, dtype=torch.uint8)] * 2
    views += [torch.zeros(2, 3, 512, 384, dtype=torch.uint8)] * 4
    batch = dict(inputs=views)
    loader = SimpleNamespace(num_workers=4, prefetch_factor=1)
    expected = (
        '2 samples of 6 views are 14 MB (torch.uint8, 7 MB each); each of 4 loader '
        'workers holds up to 2 such batches, 28 MB'
    )
    assert worker_memory(loader, batch).startswith(expected)
    loader = SimpleNamespace(num_workers=0, prefetch_factor=None)
    assert worker_memory(loader, batch).endswith('7 MB each)')
