import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from mmengine.hooks import Hook
from processes import run_processes
from toy_run import StopAfter, ToyMetric, ToyModel, toy_runner

from sapiens2_mm.checkpoint import read_checkpoint
from sapiens2_mm.engine.hooks import AtomicCheckpointHook


def names(folder) -> list[str]:
    return sorted(path.name for path in Path(folder).glob('*.pth'))


@pytest.mark.slow
def test_killed_runs_leave_a_checkpoint_to_resume_from(repo_dir, tmp_path):
    kills = 25
    result = subprocess.run(
        [sys.executable, 'tests/kill_run.py', str(tmp_path / 'run'), str(kills)],
        cwd=repo_dir,
        env={**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': str(repo_dir)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    found = json.loads(result.stdout.splitlines()[-1])
    print(found)
    assert found['kills'] == kills
    assert found['resumed'] == kills - 1
    assert found['lost'] == 0
    assert found['while_writing'] > 0
    assert found['files'] <= 2


def test_new_checkpoint_is_there_before_the_old_one_goes(tmp_path, monkeypatch):
    states = []
    replace, unlink = os.replace, os.remove

    def note(function):
        def noted(*args):
            function(*args)
            states.append(names(tmp_path))

        return noted

    monkeypatch.setattr(os, 'replace', note(replace))
    monkeypatch.setattr(os, 'remove', note(unlink))
    saving = dict(max_keep_ckpts=1, save_best='toy/score', rule='greater')
    toy_runner(tmp_path, iterations=4, checkpoint=saving).train()
    first = next(i for i, files in enumerate(states) if 'iter_1.pth' in files)
    for files in states[first:]:
        assert [name for name in files if name.startswith('iter_')]
    best = next(i for i, f in enumerate(states) if any('best' in name for name in f))
    for files in states[best:]:
        assert [name for name in files if name.startswith('best_')]
    assert [n for n in names(tmp_path) if n.startswith('iter')] == ['iter_4.pth']
    assert len([n for n in names(tmp_path) if n.startswith('best')]) == 1
    last = (tmp_path / 'last_checkpoint').read_text()
    assert last == 'iter_4.pth'


def test_milestones_are_written_and_kept(tmp_path):
    saving = dict(interval=2, max_keep_ckpts=1, keep=[3, 4])
    hooks = (StopAfter(5),)
    toy_runner(tmp_path, iterations=9, hooks=hooks, checkpoint=saving).train()
    assert names(tmp_path) == ['iter_2.pth', 'iter_3.pth', 'iter_4.pth']
    toy_runner(tmp_path, iterations=9, checkpoint=saving, resume=True).train()
    assert names(tmp_path) == ['iter_3.pth', 'iter_4.pth', 'iter_9.pth']


def test_a_resumed_run_keeps_what_became_a_milestone(tmp_path):
    saving = dict(max_keep_ckpts=2)
    toy_runner(tmp_path, iterations=2, checkpoint=saving).train()
    saving = dict(max_keep_ckpts=1, keep=[1])
    toy_runner(tmp_path, iterations=4, checkpoint=saving, resume=True).train()
    assert names(tmp_path) == ['iter_1.pth', 'iter_4.pth']


def test_leftovers_of_a_killed_run_are_removed(tmp_path):
    toy_runner(tmp_path, hooks=(StopAfter(1),)).train()
    leftover = tmp_path / '.iter_2.pth.4711.tmp'
    leftover.write_bytes(b'half')
    toy_runner(tmp_path, hooks=(StopAfter(2),), resume=True).train()
    assert not leftover.exists()
    assert read_checkpoint(tmp_path / 'iter_2.pth')['meta']['iter'] == 2


def test_other_storage_is_left_to_its_backend(tmp_path):
    saving = dict(backend_args=dict(backend='local'), out_dir=str(tmp_path / 'out'))
    toy_runner(tmp_path / 'run', iterations=1, checkpoint=saving).train()
    assert (tmp_path / 'out' / 'run' / 'iter_1.pth').is_file()


def test_best_checkpoint_of_the_same_name_is_kept(tmp_path):
    saving = dict(max_keep_ckpts=2, save_best='toy/score', rule='less')
    runner = toy_runner(tmp_path, ToyModel(), 3, checkpoint=saving)
    runner.train()
    hook = runner.hooks[
        [h.__class__.__name__ for h in runner.hooks].index('AtomicCheckpointHook')
    ]
    best = Path(hook.best_ckpt_path)
    assert best.is_file()
    runner.message_hub.update_info('best_score', float('inf'))
    runner.train_loop._iter = int(best.stem.rsplit('_', 1)[1])
    hook._save_best_checkpoint(runner, {'toy/score': -1.0})
    assert best.is_file()


def test_written_file_is_a_plain_torch_file(tmp_path):
    toy_runner(tmp_path, iterations=1).train()
    content = torch.load(tmp_path / 'iter_1.pth', weights_only=False)
    assert set(content['state_dict']) == set(ToyModel().state_dict())


def test_published_file_holds_plain_objects(tmp_path):
    saving = dict(published_keys=['meta', 'state_dict'])
    toy_runner(tmp_path, iterations=1, checkpoint=saving).train()
    (published,) = tmp_path.glob('iter_1-*.pth')
    assert 'optimizer' not in read_checkpoint(published)
    content = torch.load(published, weights_only=True)
    assert set(content) == {'meta', 'state_dict'}


SAVING = dict(max_keep_ckpts=1, save_best='toy/score', rule='greater')


def names_files(path, **info):
    """Let a checkpoint name other files as those of its run."""
    content = torch.load(path, weights_only=False)
    content['message_hub']['runtime_info'].update(info)
    torch.save(content, path)


def run_on(folder, source, iterations):
    """Resume from ``source``; every score is a new best one."""
    hub = dict(best_score=-1e9)
    names_files(source, **hub)
    toy_runner(
        folder,
        iterations=iterations,
        checkpoint=SAVING,
        load_from=str(source),
        resume=True,
    ).train()


def test_resuming_elsewhere_leaves_the_first_folder_as_it_is(tmp_path):
    toy_runner(tmp_path / 'a', iterations=2, checkpoint=SAVING).train()
    before = names(tmp_path / 'a')
    assert any(name.startswith('best') for name in before)
    (tmp_path / 'b').mkdir()
    (tmp_path / 'b' / 'iter_2.pth').write_bytes(b'of another run')
    run_on(tmp_path / 'b', tmp_path / 'a' / 'iter_2.pth', 4)
    assert names(tmp_path / 'a') == before
    assert (tmp_path / 'b' / 'iter_2.pth').read_bytes() == b'of another run'
    best, *steps = names(tmp_path / 'b')
    assert best.startswith('best') and steps == ['iter_2.pth', 'iter_4.pth']


def test_files_that_a_checkpoint_names_are_not_removed(tmp_path):
    toy_runner(tmp_path / 'a', iterations=2, checkpoint=SAVING).train()
    source = tmp_path / 'a' / 'iter_2.pth'
    letter = tmp_path / 'letter.txt'
    letter.write_text('keep me')
    near = tmp_path / 'a' / 'notes.txt'
    near.write_text('keep me')
    for best in (letter, near):
        (tmp_path / 'a' / 'iter_').mkdir(exist_ok=True)
        steps = ['/../../letter.txt', '/../notes.txt', 2]
        names_files(source, best_ckpt=str(best), keep_ckpt_ids=steps)
        run_on(tmp_path / 'a', source, 3)
        source = tmp_path / 'a' / 'iter_3.pth'
    assert letter.read_text() == near.read_text() == 'keep me'


def test_a_resumed_run_goes_on_with_its_own_files(tmp_path):
    toy_runner(tmp_path, iterations=2, checkpoint=SAVING).train()
    run_on(tmp_path, tmp_path / 'iter_2.pth', 4)
    best, *steps = names(tmp_path)
    assert best.startswith('best') and steps == ['iter_4.pth']


def test_what_a_killed_run_did_not_come_to_remove_is_removed(tmp_path, monkeypatch):
    def killed(hook, step):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(AtomicCheckpointHook, '_remove_step', killed)
        toy_runner(tmp_path, checkpoint=dict(max_keep_ckpts=1)).train()
    assert names(tmp_path) == ['iter_1.pth', 'iter_2.pth']
    run = toy_runner(
        tmp_path,
        hooks=(StopAfter(3),),
        checkpoint=dict(max_keep_ckpts=1),
        resume=True,
    )
    run.train()
    assert names(tmp_path) == ['iter_3.pth']
    assert run.message_hub.get_info('keep_ckpt_ids') == [3]


@pytest.mark.parametrize('absolute', [False, True])
def test_a_moved_or_copied_folder_goes_on_by_itself(absolute, tmp_path):
    toy_runner(tmp_path / 'old', hooks=(StopAfter(2),)).train()
    if absolute:  # as mmengine's own hook writes it
        path = tmp_path / 'old' / 'iter_2.pth'
        (tmp_path / 'old' / 'last_checkpoint').write_text(str(path))
    shutil.copytree(tmp_path / 'old', tmp_path / 'copied')
    toy_runner(tmp_path / 'old', hooks=(StopAfter(3),), resume=True).train()
    copied = toy_runner(tmp_path / 'copied', hooks=(StopAfter(4),), resume=True)
    copied.train()
    assert copied._load_from == str(tmp_path / 'copied' / 'iter_2.pth')
    shutil.rmtree(tmp_path / 'old')
    (tmp_path / 'copied').rename(tmp_path / 'moved')
    moved = toy_runner(tmp_path / 'moved', hooks=(StopAfter(5),), resume=True)
    moved.train()
    assert moved._load_from == str(tmp_path / 'moved' / 'iter_4.pth')
    assert names(tmp_path / 'moved')[-1] == 'iter_5.pth'


def test_checkpoints_outside_the_work_folder_are_found(tmp_path):
    saving = dict(out_dir=str(tmp_path / 'out'))
    toy_runner(tmp_path / 'run', hooks=(StopAfter(1),), checkpoint=saving).train()
    runner = toy_runner(tmp_path / 'run', iterations=2, checkpoint=saving, resume=True)
    runner.train()
    assert runner._load_from == str(tmp_path / 'out' / 'run' / 'iter_1.pth')
    assert names(tmp_path / 'out' / 'run') == ['iter_1.pth', 'iter_2.pth']


class Terminate(Hook):
    """Sends a signal to its own process during an iteration."""

    priority = 'HIGH'

    def __init__(self, iteration, signal_number=signal.SIGTERM):
        self.iteration, self.signal_number = iteration, signal_number

    def before_train_iter(self, runner, *args, **kwargs):
        if runner.iter + 1 == self.iteration:
            os.kill(os.getpid(), self.signal_number)


def test_a_run_that_is_terminated_saves_and_goes_on_from_there(tmp_path):
    toy_runner(tmp_path / 'a', iterations=5, checkpoint=dict(interval=9)).train()
    former = signal.getsignal(signal.SIGTERM)
    rare = dict(iterations=5, checkpoint=dict(interval=9))
    stopped = toy_runner(tmp_path / 'b', hooks=(Terminate(3),), **rare)
    with pytest.raises(SystemExit) as exit_info:
        stopped.train()
    assert exit_info.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is former
    assert names(tmp_path / 'b') == ['iter_3.pth']
    toy_runner(tmp_path / 'b', resume=True, **rare).train()
    one, other = (read_checkpoint(tmp_path / run / 'iter_5.pth') for run in 'ab')
    for key, value in one['state_dict'].items():
        assert torch.equal(value, other['state_dict'][key]), key


def test_a_run_by_epochs_that_is_terminated_says_where_it_stands(tmp_path, lines):
    runner = toy_runner(
        tmp_path,
        hooks=(Terminate(6),),
        checkpoint=dict(by_epoch=True),
        train_cfg=dict(by_epoch=True, max_epochs=2, val_interval=9),
        sampler=dict(type='DefaultSampler', shuffle=True),
    )
    with pytest.raises(SystemExit):
        runner.train()
    assert names(tmp_path) == ['epoch_1.pth']
    (text,) = [text for _, text in lines if 'SIGTERM' in text]
    assert 'ends after iteration 6 with epoch_1.pth' in text


class SlowSave(Hook):
    def before_save_checkpoint(self, runner, checkpoint):
        time.sleep(0.3)


def _one_of_two(rank, folder):
    try:
        hooks = (Terminate(2, signal.SIGUSR1) if rank == 1 else SlowSave(),)
        rare = dict(iterations=9, checkpoint=dict(interval=9))
        toy_runner(folder, hooks=hooks, launcher='none', **rare).train()
    except SystemExit as err:
        (folder / f'{rank}.txt').write_text(f'{err.code} {names(folder)}')


def test_all_processes_end_together(tmp_path):
    run_processes(_one_of_two, tmp_path, 2)
    for rank in (0, 1):  # none before the checkpoint is written
        assert (tmp_path / f'{rank}.txt').read_text() == "138 ['iter_3.pth']"


class Fill(Hook):
    """No file may grow as large as a checkpoint, from the third iteration on."""

    def before_train_iter(self, runner, *args, **kwargs):
        if runner.iter == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def _fill_disk(rank, folder):
    saving = dict(max_keep_ckpts=1)
    with pytest.raises(OSError, match='File too large') as error:
        toy_runner(folder, hooks=(Fill(),), checkpoint=saving).train()
    (folder / 'error').write_text(str(error.value))


def test_a_full_disk_ends_the_run_and_keeps_the_checkpoints(tmp_path):
    run_processes(_fill_disk, tmp_path, 1)
    message = f'{tmp_path}/iter_3.pth was not written: File too large; what was there'
    assert message in (tmp_path / 'error').read_text()
    assert os.listdir(tmp_path).count('iter_2.pth') == 1
    assert not list(tmp_path.glob('.*.tmp'))
    runner = toy_runner(tmp_path, iterations=3, resume=True)
    runner.train()
    assert runner._load_from == str(tmp_path / 'iter_2.pth')


def test_the_best_by_a_metric_with_a_blank_in_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr(ToyMetric, 'compute_metrics', lambda *args: {'AP (M)': 0.5})
    saving = dict(save_best='toy/AP (M)', rule='greater')
    toy_runner(tmp_path, iterations=1, checkpoint=saving).train()
    assert (tmp_path / 'best_toy_AP (M)_iter_1.pth').is_file()
