"""Runs of ``FSDP2Strategy`` save folders, and go on from them."""

import os
import signal

import pytest
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import DATASETS, HOOKS, MODELS
from processes import run_processes
from toy_run import ToyData, ToyModel

from sapiens2_mm.checkpoint import read_checkpoint
from sapiens2_mm.engine import launch


@DATASETS.register_module()
class PlainData(ToyData):
    def __getitem__(self, index):
        return dict(inputs=torch.full((3, 32, 32), index / 8))


@MODELS.register_module()
class PlainModel(ToyModel):
    def __init__(self, **kwargs):
        super().__init__(drop_path_rate=0, **kwargs)


@HOOKS.register_module()
class EndOne(Hook):
    """A signal for the second process in its third iteration."""

    priority = 'HIGH'

    def before_train_iter(self, runner, *args, **kwargs):
        if runner.iter == 2 and runner.rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)


def config(folder, **options):
    processes = torch.distributed.get_world_size() if options else 1
    return Config(
        dict(
            default_scope='mmengine',
            model=dict(type='PlainModel'),
            train_dataloader=dict(
                batch_size=4 // processes,
                num_workers=0,
                sampler=dict(type='InfiniteSampler', shuffle=False),
                dataset=dict(type='PlainData'),
            ),
            train_cfg=dict(by_epoch=False, max_iters=8),
            optim_wrapper=dict(
                optimizer=dict(type='AdamW', lr=0.01, eps=1e-3),
                clip_grad=dict(max_norm=0.1),
            ),
            param_scheduler=[dict(type='PolyLR', by_epoch=False, end=8)],
            default_hooks=dict(
                load=dict(type='sapiens2_mm.LoadCheckpointHook'),
                random_state=dict(type='sapiens2_mm.RandomStateHook'),
                checkpoint=dict(
                    type='sapiens2_mm.AtomicCheckpointHook',
                    by_epoch=False,
                    interval=6,
                    max_keep_ckpts=1,
                    keep=[4],
                ),
            ),
            env_cfg=dict(dist_cfg=dict(backend='gloo')),
            randomness=dict(seed=0),
            work_dir=str(folder),
            log_level='WARNING',
            **options,
        )
    )


def _run(rank, folder):
    """Straight on, and ended by a signal and resumed."""
    strategy = dict(type='sapiens2_mm.FSDP2Strategy')
    options = dict(strategy=strategy, launcher='pytorch')
    launch.build_runner(config(folder / 'straight', **options)).train()
    ending = config(folder / 'ended', custom_hooks=[dict(type='EndOne')], **options)
    with pytest.raises(SystemExit) as error:
        launch.build_runner(ending).train()
    assert error.value.code == 143
    assert (folder / 'ended' / 'iter_4.pth' / 'state.pth').is_file()
    for name, source in (('ended', 'auto'), ('from_file', folder / 'one/iter_4.pth')):
        resumed = config(folder / name, **options)
        launch.resume(resumed, str(source))
        launch.build_runner(resumed).train()


def weights(path):
    return read_checkpoint(path / 'iter_8.pth')['state_dict']


@pytest.mark.slow
def test_sharded_runs_go_on_with_any_number_of_processes(tmp_path):
    launch.build_runner(config(tmp_path / 'one')).train()  # without the strategy
    run_processes(_run, tmp_path, 2)
    straight, ended = weights(tmp_path / 'straight'), weights(tmp_path / 'ended')
    for key, value in straight.items():
        assert torch.equal(value, ended[key]), key
    for name in ('straight', 'ended'):
        found = sorted(path.name for path in (tmp_path / name).glob('*iter*'))
        assert found == ['iter_4.pth', 'iter_8.pth']
        assert (tmp_path / name / 'last_checkpoint').read_text() == 'iter_8.pth'
    alone = config(tmp_path / 'from_folder')
    launch.resume(alone, str(tmp_path / 'straight' / 'iter_4.pth'))
    launch.build_runner(alone).train()
    for name in ('one', 'from_file', 'from_folder'):
        for key, value in weights(tmp_path / name).items():
            torch.testing.assert_close(value, straight[key], rtol=0, atol=1e-5)
