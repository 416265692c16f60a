"""Settings that were changed between a run and its continuation."""

import numpy as np
import pytest
import torch
from toy_run import StopAfter, ToyModel, toy_runner

from sapiens2_mm.checkpoint import CheckpointError, read_checkpoint

WARM_UP = dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=2)


def run(folder, schedule=(), lr=0.01, optimizer=None, paramwise=None, **options):
    """Train with these settings; the rates of all iterations of the run."""
    runner = toy_runner(folder, **options)
    if schedule:
        runner.param_schedulers = [dict(scheduler) for scheduler in schedule]
    runner.optim_wrapper['optimizer'] = dict(optimizer or dict(type='AdamW'), lr=lr)
    runner.optim_wrapper['paramwise_cfg'].update(paramwise or {})
    runner.train()
    scalars = runner.message_hub.log_scalars
    rates = np.array(scalars['train/base_lr'].data[0])
    return rates, [group['lr'] for group in runner.optim_wrapper.param_groups]


def warnings_in(lines):
    of_mmengine = ('"FileClient"', 'Advance dataloader')
    return [
        text
        for level, text in lines
        if level == 'WARNING' and not text.startswith(of_mmengine)
    ]


def lr(kind, **settings):
    return [WARM_UP, dict(type=kind, by_epoch=False, begin=2, **settings)]


SCHEDULES = {
    'poly': lambda end: lr('PolyLR', eta_min=0.0, end=end),
    'cosine': lambda end: lr('CosineAnnealingLR', eta_min=1e-5, end=end),
    'linear': lambda end: lr('LinearLR', start_factor=1.0, end_factor=0.0, end=end),
    'one cycle': lambda end: [
        dict(type='OneCycleLR', eta_max=0.02, total_steps=end, by_epoch=False)
    ],
    'steps': lambda end: lr('MultiStepLR', milestones=[end // 2, end - 1]),
    'epochs': lambda end: [dict(type='PolyLR', eta_min=0.0, end=end // 4)],
}


@pytest.mark.parametrize('name', SCHEDULES)
def test_a_run_that_is_made_longer_follows_the_longer_schedule(name, tmp_path, lines):
    options = {}
    if name == 'epochs':  # of four iterations
        options = dict(
            checkpoint=dict(by_epoch=True), sampler=dict(type='DefaultSampler')
        )

    def train(folder, length, **more):
        by_epoch = dict(by_epoch=True, max_epochs=length // 4)
        train_cfg = by_epoch if name == 'epochs' else None
        schedule = SCHEDULES[name](length)
        more.update(options, iterations=length, train_cfg=train_cfg, val_interval=99)
        return run(tmp_path / folder, schedule, **more)

    straight, final = train('straight', 16)
    first, _ = train('parts', 8)
    lines.clear()
    rates, resumed_final = train('parts', 16, resume=True)
    np.testing.assert_allclose(rates[:8], first)
    np.testing.assert_allclose(rates[8:], straight[8:])
    np.testing.assert_allclose(resumed_final, final)
    assert rates[8] > 0
    (warning,) = warnings_in(lines)
    change = {'steps': 'milestones', 'one cycle': 'total_steps'}.get(name, 'end')
    assert f'{change} of param_scheduler[' in warning
    assert 'from iteration 8 on those of the config hold' in warning


def test_changed_settings_of_the_optimizer_hold(tmp_path, lines):
    schedule = lr('PolyLR', eta_min=0.0, end=8)
    adam = dict(type='AdamW', weight_decay=0.1)
    straight, _ = run(tmp_path / 'straight', schedule, 0.03, iterations=8)
    run(tmp_path / 'a', schedule, 0.01, iterations=8, hooks=(StopAfter(4),))
    rates, _ = run(tmp_path / 'a', schedule, 0.03, adam, iterations=8, resume=True)
    np.testing.assert_allclose(rates[4:], straight[4:])
    (warning,) = warnings_in(lines)
    assert 'initial_lr from 0.01 to 0.03, weight_decay from 0.0' in warning
    groups = read_checkpoint(tmp_path / 'a' / 'iter_8.pth')['optimizer']['param_groups']
    assert {group['weight_decay'] for group in groups} == {0.0, 0.1}


def test_nothing_is_said_if_nothing_was_changed(tmp_path, lines):
    run(tmp_path, iterations=4, hooks=(StopAfter(2),))
    run(tmp_path, iterations=4, resume=True)
    assert warnings_in(lines) == []


def test_a_schedule_that_has_ended_is_said(tmp_path, lines):
    poly = lr('PolyLR', eta_min=0.0, end=4)
    run(tmp_path / 'a', poly, iterations=4)
    message = r'has ended \(end=\[2, 4\]\), and the 2 iterations that are left would '
    with pytest.raises(CheckpointError, match=f'{message}.* rate of 0; set end of'):
        run(tmp_path / 'a', poly, iterations=6, resume=True)
    cosine = lr('CosineAnnealingLR', eta_min=1e-4, end=4)
    run(tmp_path / 'b', cosine, iterations=4)
    lines.clear()
    run(tmp_path / 'b', cosine, iterations=6, resume=True)
    (warning,) = warnings_in(lines)
    assert 'train with a rate of 0.00505; if that is not meant, set end' in warning
    lines.clear()
    run(tmp_path / 'b', cosine, iterations=6, resume=True)
    (warning,) = warnings_in(lines)
    assert warning.startswith('6 of 6 iterations: the run is complete; raise')


def test_a_schedule_that_follows_a_metric_stays_that_of_the_file(tmp_path, lines):
    plateau = dict(type='ReduceOnPlateauLR', monitor='toy/score', factor=0.5)
    run(tmp_path, [plateau], 0.01, iterations=2)
    plateau['factor'] = 0.1
    rates, _ = run(tmp_path, [plateau], 0.03, iterations=4, resume=True)
    assert set(rates) == {0.01}
    (warning,) = warnings_in(lines)
    assert 'factor of param_scheduler[0] from 0.5 to 0.1' in warning
    assert 'the settings of the file hold, as a schedule that follows a' in warning


OTHER_RUNS = {
    r"the optimizer is \{'': 'AdamW'\} in it and \{'': 'SGD'\}": dict(
        optimizer=dict(type='SGD', momentum=0.9)
    ),
    r"the optimizer is .*'Adamax'": dict(optimizer=dict(type='Adamax')),
    r'parameter group \d has apart from the common ones '
    r'backbone\.storage_tokens in it and backbone\.cls_token in': dict(
        paramwise=dict(no_decay_keys=('cls_token',))
    ),
}


@pytest.mark.parametrize('message', OTHER_RUNS)
def test_another_optimizer_is_refused(message, tmp_path):
    # as many parameters decay as before
    paramwise = dict(no_decay_keys=('storage_tokens',))
    run(tmp_path, iterations=1, paramwise=paramwise)
    with pytest.raises(CheckpointError, match=f'{message}.* by load_from instead'):
        run(
            tmp_path,
            iterations=2,
            resume=True,
            **{'paramwise': paramwise, **OTHER_RUNS[message]},
        )


def test_another_optimizer_is_refused_for_a_file_of_mmengine(tmp_path):
    run(tmp_path, iterations=1)
    content = torch.load(tmp_path / 'iter_1.pth', weights_only=False)
    del content['meta']['optimizers']
    torch.save(content, tmp_path / 'iter_1.pth')
    sgd = dict(type='SGD', momentum=0.9)
    message = r"settings of the optimizer are .*'betas'.* in it and .*'dampening'"
    with pytest.raises(CheckpointError, match=message):
        run(tmp_path, optimizer=sgd, iterations=2, resume=True)


def test_resuming_without_the_averages_of_the_file_is_refused(tmp_path):
    run(tmp_path, iterations=1)
    runner = toy_runner(tmp_path, ToyModel(), iterations=2, resume=True)
    runner._hooks = [h for h in runner.hooks if type(h).__name__ != 'EMAHook']
    with pytest.raises(CheckpointError, match='would go on from the averages'):
        runner.train()
