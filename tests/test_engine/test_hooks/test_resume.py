"""A resumed run is the run that was interrupted."""

import random

import numpy as np
import pytest
import torch
from mmengine.hooks import Hook
from mmengine.logging import HistoryBuffer
from toy_run import StopAfter, ToyData, ToyModel, toy_runner

from sapiens2_mm.checkpoint import CheckpointError, read_checkpoint
from sapiens2_mm.checkpoint.layouts.convert import convert_checkpoint
from sapiens2_mm.engine.hooks.random_state_hook import (
    get_random_state,
    set_random_state,
)

# Wall clock, and names of this very run.
VARIES = ('time', 'experiment_name', 'last_ckpt', 'best_ckpt', 'memory', 'val/')


def differences(one, other, path='') -> list[str]:
    """Paths of the entries that are not bit-equal."""
    if isinstance(one, dict):
        if list(one) != list(other):
            return [path]
        return [
            found
            for key in one
            if not any(word in str(key) for word in VARIES)
            for found in differences(one[key], other[key], f'{path}.{key}')
        ]
    if isinstance(one, list | tuple):
        pairs = enumerate(zip(one, other, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, f'{path}.{i}')]
    if isinstance(one, HistoryBuffer):
        return differences(one.data, other.data, path)
    if isinstance(one, torch.Tensor):
        return [] if torch.equal(one, other) and one.dtype == other.dtype else [path]
    return [] if np.array_equal(one, other) else [path]


@pytest.mark.parametrize('workers', [0, pytest.param(2, marks=pytest.mark.slow)])
def test_six_iterations_equal_three_and_three(workers, tmp_path):
    ToyData.seen.clear()
    toy_runner(tmp_path / 'a', workers=workers).train()
    straight = list(ToyData.seen)
    ToyData.seen.clear()
    stop = StopAfter(3)
    toy_runner(tmp_path / 'b', hooks=(stop,), workers=workers).train()
    assert not (tmp_path / 'b' / 'iter_4.pth').exists()
    resumed = toy_runner(tmp_path / 'b', workers=workers, resume=True)
    resumed.train()
    assert resumed.iter == 6

    one, other = (read_checkpoint(tmp_path / run / 'iter_6.pth') for run in 'ab')
    entries = [
        'meta', 'state_dict', 'message_hub', 'optimizer', 'param_schedulers',
        'ema_state_dict', 'random_state',
    ]  # fmt: skip
    assert list(one) == list(other) == entries
    for entry in entries[1:]:
        assert differences(one[entry], other[entry]) == []
    assert len(one['optimizer']['state']) > 10
    losses = one['message_hub']['log_scalars']['train/loss'].data[0]
    assert len(losses) == 6 and len(set(losses)) == 6
    if workers == 0:  # the indices of training and validation, in order
        assert len(straight) == 6 * (2 + 8)


def test_losses_depend_on_every_generator(tmp_path, monkeypatch):
    """Without the hook the same comparison fails, so it does compare."""
    monkeypatch.setattr(
        'sapiens2_mm.engine.hooks.random_state_hook.set_random_state',
        lambda state: None,
    )
    toy_runner(tmp_path / 'a').train()
    toy_runner(tmp_path / 'b', hooks=(StopAfter(3),)).train()
    toy_runner(tmp_path / 'b', resume=True).train()
    one, other = (read_checkpoint(tmp_path / run / 'iter_6.pth') for run in 'ab')
    assert differences(one['state_dict'], other['state_dict'])


def test_random_states_come_back():
    state = get_random_state()
    drawn = random.random(), np.random.rand(), torch.rand(1)
    set_random_state(state)
    assert (random.random(), np.random.rand(), torch.rand(1)) == drawn


def test_resume_after_a_new_head_points_to_load_from(tmp_path):
    toy_runner(tmp_path / 'a', iterations=1).train()
    runner = toy_runner(tmp_path / 'a', ToyModel(5), resume=True)
    message = (
        r'cannot resume from .*iter_1\.pth: the model has changed.*'
        r'head\.final_layer\.weight: checkpoint \(2, 32\), model \(5, 32\).*'
        'by load_from instead'
    )
    with pytest.raises(CheckpointError, match=message):
        runner.train()


def test_resume_of_another_size_names_keys_and_shapes(tmp_path):
    toy_runner(tmp_path / 'a', iterations=1).train()
    wide = dict(embed_dims=64, num_layers=3, num_heads=2, feedforward_channels=64)
    runner = toy_runner(tmp_path / 'a', ToyModel(arch=wide), resume=True)
    message = (
        r'cannot resume from .*cls_token: checkpoint \(1, 1, 32\), model \(1, 1, 64\)'
        r'.*missing in the checkpoint: backbone\.blocks\.2\.'
    )
    with pytest.raises(CheckpointError, match=message):
        runner.train()


def test_resume_with_other_parameter_groups_points_to_load_from(tmp_path):
    toy_runner(tmp_path / 'a', iterations=1).train()
    runner = toy_runner(tmp_path / 'a', ToyModel(frozen_stages=1), resume=True)
    with pytest.raises(
        CheckpointError,
        match=r'sizes of the parameter groups are.*by load_from instead',
    ):
        runner.train()


def test_resume_from_weights_says_that_they_are_no_training_state(tmp_path, save):
    path = save(ToyModel().state_dict(), 'w.safetensors')
    toy_runner(
        tmp_path / 'a', iterations=1, checkpoint=dict(save_optimizer=False)
    ).train()
    for source in (path, str(tmp_path / 'a' / 'iter_1.pth')):
        runner = toy_runner(tmp_path / 'b', load_from=source, resume=True)
        message = f'cannot resume from {source}: it holds weights only, no optimizer'
        with pytest.raises(CheckpointError, match=message):
            runner.train()


def test_resume_without_the_state_of_the_schedule_is_refused(tmp_path):
    toy_runner(
        tmp_path / 'a', iterations=1, checkpoint=dict(save_param_scheduler=False)
    ).train()
    runner = toy_runner(tmp_path / 'a', iterations=2, resume=True)
    count = len(runner.param_schedulers)
    message = rf'schedulers is 0 in it and {count} in this run; it is incomplete'
    with pytest.raises(CheckpointError, match=message):
        runner.train()
    toy_runner(tmp_path / 'b', iterations=1).train()
    runner = toy_runner(tmp_path / 'b', iterations=2, resume=True)
    runner.param_schedulers = [*runner.param_schedulers, runner.param_schedulers[0]]
    message = f'parameter schedulers is {count} in it and {count + 1} in this run'
    with pytest.raises(CheckpointError, match=message):
        runner.train()


def test_other_schedules_are_tested_resumed_and_converted(tmp_path, monkeypatch):
    metainfo = dict(classes=('one',), skeleton_links=[], link_colors=np.array([]))
    monkeypatch.setattr(ToyData, 'metainfo', metainfo)

    def runner(folder, *hooks, **options):
        built = toy_runner(tmp_path / folder, hooks=hooks, iterations=4, **options)
        built.param_schedulers = [
            dict(type='OneCycleLR', eta_max=0.1, total_steps=9, by_epoch=False),
            dict(type='MultiStepLR', milestones=[1, 3], by_epoch=False),
        ]
        return built

    runner('a').train()
    runner('b', StopAfter(2)).train()
    runner('b', resume=True).train()
    one, other = (read_checkpoint(tmp_path / run / 'iter_4.pth') for run in 'ab')
    for entry in ('state_dict', 'optimizer', 'param_schedulers', 'ema_state_dict'):
        assert differences(one[entry], other[entry]) == []
    path = str(tmp_path / 'b' / 'iter_4.pth')
    assert np.isfinite(runner('c', load_from=path).test()['toy/score'])
    convert_checkpoint(path, tmp_path / 'b.safetensors', 'official', task='pretrain')
    converted = read_checkpoint(tmp_path / 'b.safetensors')['state_dict']
    key = 'blocks.0.ln1.weight'
    assert torch.equal(converted[key], other['state_dict'][f'backbone.{key}'])


def test_epochs_are_resumed_exactly_too(tmp_path):
    class Stop(Hook):
        def after_train_epoch(self, runner):
            runner.train_loop.stop_training = runner.epoch == 0

    def run(folder, *hooks, **options):
        runner = toy_runner(
            tmp_path / folder,
            hooks=hooks,
            checkpoint=dict(by_epoch=True),
            train_cfg=dict(by_epoch=True, max_epochs=2, val_interval=1),
            sampler=dict(type='DefaultSampler', shuffle=True),
            **options,
        )
        runner.train()
        return runner

    run('a')
    assert run('b', Stop()).epoch == 1
    run('b', resume=True)
    one, other = (read_checkpoint(tmp_path / run / 'epoch_2.pth') for run in 'ab')
    for entry in ('state_dict', 'optimizer', 'ema_state_dict', 'random_state'):
        assert differences(one[entry], other[entry]) == []
