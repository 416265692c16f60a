"""Runs of several processes by the scripts of clusters, as these start and end them."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

MODULE = """
import os
import time
from pathlib import Path

from mmengine.hooks import Hook
from mmengine.registry import DATASETS, HOOKS, MODELS
from toy_run import ToyData, ToyModel

DATASETS.register_module(module=ToyData)
MODELS.register_module(module=ToyModel)


@HOOKS.register_module()
class Announce(Hook):
    def after_train_iter(self, runner, *args, **kwargs):
        path = Path(runner.work_dir, f'rank{runner.rank}')
        path.write_text(f'{os.getpid()} {runner.world_size} {runner.iter}')
        time.sleep(0.1)
"""
CONFIG = """
custom_imports = dict(imports=['registered'])
default_scope = 'mmengine'
model = dict(type='ToyModel')
train_dataloader = dict(
    batch_size=2,
    num_workers=0,
    sampler=dict(type='InfiniteSampler'),
    dataset=dict(type='ToyData'),
)
train_cfg = dict(by_epoch=False, max_iters=10000)
optim_wrapper = dict(optimizer=dict(type='AdamW', lr=0.01))
default_hooks = dict(
    checkpoint=dict(
        type='sapiens2_mm.AtomicCheckpointHook',
        by_epoch=False,
        interval=5,
        max_keep_ckpts=1,
    )
)
custom_hooks = [dict(type='Announce')]
"""
# Starts two tasks as srun does, and returns the code of the first that ends badly.
SRUN = """#!/usr/bin/env bash
[ "$1" = --kill-on-bad-exit=1 ] || exit 99
shift
export SLURM_NTASKS=2
SLURM_PROCID=0 SLURM_LOCALID=0 "$@" & one=$!
SLURM_PROCID=1 SLURM_LOCALID=1 "$@" & other=$!
trap 'kill -USR1 $other; wait $other' USR1
wait $one; wait $other; exit $?
"""
SCONTROL = """#!/usr/bin/env bash
echo "$*" >> scontrol.log
[ "$1" = show ] && echo 127.0.0.1
"""


@pytest.fixture
def start(tmp_path, repo_dir, monkeypatch):
    """Starts a script of tools/ in the folder of a run; all end with the test."""
    (tmp_path / 'registered.py').write_text(MODULE)
    (tmp_path / 'config.py').write_text(CONFIG)
    (tmp_path / 'tools').symlink_to(repo_dir / 'tools')
    for name, text in dict(srun=SRUN, scontrol=SCONTROL).items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    paths = os.pathsep.join(map(str, (tmp_path, repo_dir, repo_dir / 'tests')))
    env = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': paths}
    env['PATH'] = os.pathsep.join(
        [str(tmp_path), str(Path(sys.executable).parent), env['PATH']]
    )
    started = []

    def start(script, *args, **variables):
        with open(tmp_path / f'log{len(started)}', 'w') as log:
            process = subprocess.Popen(
                ['bash', f'tools/{script}', 'config.py', *args, '--work-dir', 'work'],
                cwd=tmp_path,
                env={**env, **variables},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def state(folder, rank):
    """Process id, number of processes and iteration, once it has come so far."""
    path = folder / 'work' / f'rank{rank}'
    return [int(x) for x in path.read_text().split()] if path.exists() else []


def wait_for(condition, seconds=100):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f'/proc/{pid}/stat').read_text().split()[2] != 'Z'


@pytest.mark.slow
def test_runs_of_clusters(start, tmp_path):
    """Two machines, one process killed, then Slurm goes on until it wants the place."""
    machines = [
        start('dist_train.sh', '1', NNODES='2', MASTER_ADDR='127.0.0.1', PORT='29431')
        for _ in range(2)
    ]
    wait_for(lambda: state(tmp_path, 1)[2:] > [6] and state(tmp_path, 0)[2:] > [6])
    pids = [state(tmp_path, rank)[0] for rank in (0, 1)]
    assert state(tmp_path, 0)[1] == 2
    os.kill(pids[1], signal.SIGKILL)
    begin = time.monotonic()
    assert all(machine.wait(60) not in (0, None) for machine in machines)
    assert time.monotonic() - begin < 60
    assert not any(map(is_alive, pids))
    saved = (tmp_path / 'work' / 'last_checkpoint').read_text()
    for rank in (0, 1):
        (tmp_path / 'work' / f'rank{rank}').unlink()

    variables = dict(SLURM_JOB_ID='7', SLURM_JOB_NODELIST='node[1-2]')
    job = start('slurm_train.sh', **variables)
    wait_for(lambda: len(state(tmp_path, 1)) == 3)
    assert state(tmp_path, 1)[1:] >= [2, int(saved[5:-4])]
    os.kill(state(tmp_path, 1)[0], signal.SIGUSR1)
    assert job.wait(60) == 138
    assert 'requeue 7' in (tmp_path / 'scontrol.log').read_text()
    last = (tmp_path / 'work' / 'last_checkpoint').read_text()
    assert int(last[5:-4]) > int(saved[5:-4])
    done = state(tmp_path, 0)[2] + 1
    assert last == f'iter_{done}.pth'


@pytest.mark.slow
def test_torchrun_passes_the_signal_on(start, tmp_path):
    agent = start('dist_train.sh', '1')
    wait_for(lambda: state(tmp_path, 0)[2:] > [0])
    os.kill(agent.pid, signal.SIGUSR1)
    assert agent.wait(60) == 1
    last = f'iter_{state(tmp_path, 0)[2] + 1}.pth'
    assert (tmp_path / 'work' / 'last_checkpoint').read_text() == last
