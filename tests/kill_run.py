"""Kill a run at random moments, resume it, and print what was found as JSON.

``python tests/kill_run.py FOLDER KILLS``. One process imports everything and forks a
child per start, so that a start takes a fraction of a second.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import matplotlib.figure  # noqa: F401  what a run imports on its way, imported once
from mmengine.hooks import Hook
from mmengine.runner import Runner
from toy_run import ToyModel, toy_runner

import sapiens2_mm.engine  # noqa: F401
from sapiens2_mm.checkpoint import read_checkpoint

ITERATIONS = 10**6
# Large enough for the writing to take a good part of the time.
ARCH = dict(embed_dims=128, num_layers=6, num_heads=2, feedforward_channels=512)


class Progress(Hook):
    """Appends every iteration that is over, its checkpoint included, to a file."""

    priority = 'LOWEST'

    def after_train_iter(self, runner: Runner, *args, **kwargs) -> None:
        with open(Path(runner.work_dir, 'progress'), 'a') as file:
            file.write(f'{os.getpid()} {runner.iter + 1}\n')


def start(folder: Path, hooks: tuple = (), iterations: int = ITERATIONS) -> int:
    """Fork a child that resumes the run; returns its process id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    Runner._log_env = lambda *args: None  # asks compilers for their versions
    try:
        with open(folder / 'output', 'w') as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        toy_runner(
            folder,
            ToyModel(arch=ARCH),
            iterations,
            hooks=(Progress(), *hooks),
            checkpoint=dict(max_keep_ckpts=1),
            val_interval=ITERATIONS,
            resume=True,
        ).train()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def lines_of(folder: Path, pid: int) -> list[int]:
    path = folder / 'progress'
    if not path.exists():
        return []
    rows = [line.split() for line in path.read_text().splitlines()]
    return [int(row[1]) for row in rows if len(row) == 2 and row[0] == str(pid)]


def kill_and_check(folder: Path, kills: int) -> dict[str, int]:
    rng = random.Random(0)
    found = dict(kills=0, resumed=0, while_writing=0, lost=0)
    saved = 0
    for _ in range(kills):
        pid = start(folder)
        wanted = len(lines_of(folder, pid)) + rng.randint(1, 2)
        while len(lines_of(folder, pid)) < wanted:  # it did resume and goes on
            if os.waitpid(pid, os.WNOHANG)[0]:
                raise RuntimeError((folder / 'output').read_text()[-3000:])
            time.sleep(0.005)
        time.sleep(rng.random() * 0.4)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        found['kills'] += 1
        done = lines_of(folder, pid)
        if saved:  # the first iteration that is new, so nothing is lost or skipped
            found['resumed'] += done[0] == saved + 1
        path = folder / (folder / 'last_checkpoint').read_text()
        saved = read_checkpoint(path)['meta']['iter']
        found['lost'] += max(0, done[-1] - saved)
        found['while_writing'] += bool(list(folder.glob('.*.tmp')))
    return {**found, 'iterations': saved, 'files': len(list(folder.glob('*.pth')))}


if __name__ == '__main__':
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    print(json.dumps(kill_and_check(target, int(sys.argv[2]))))
