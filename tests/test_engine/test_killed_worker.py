"""A loader worker that is killed, for want of memory say, ends the training at once."""

import re
import subprocess
import sys
import time

import pytest
from toy_run import toy_runner

from sapiens2_mm.engine import launch

# In a process of its own: torch reports the dead worker from a signal handler, again
# and again, in whatever code runs then.
SCRIPT = """
import multiprocessing, os, signal, sys
from mmengine.hooks import Hook
from toy_run import toy_runner
from sapiens2_mm.engine import launch

class KillsWorker(Hook):
    def after_train_iter(self, runner, *args, **kwargs):
        if runner.iter == 1:
            os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)

never = 10**6
options = dict(workers=2, checkpoint=dict(interval=never), val_interval=never)
launch.train(toy_runner(sys.argv[1], None, never, (KillsWorker(),), **options))
"""


def test_a_killed_loader_worker_ends_the_run(tmp_path, repo_dir):
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, '-c', SCRIPT, str(tmp_path)],
        cwd=repo_dir / 'tests',
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert time.monotonic() - start < 60
    assert done.returncode == 1
    said = r'RuntimeError.*worker.*(killed|exited unexpectedly)'
    assert re.search(said, done.stderr), done.stderr[-2000:]


@pytest.mark.parametrize('error', [ConnectionResetError(104, 'reset'), EOFError()])
def test_a_broken_pipe_to_a_worker_is_said(tmp_path, error):
    runner = toy_runner(tmp_path)

    def broken() -> None:
        raise error

    runner.train = broken
    with pytest.raises(RuntimeError, match='loader worker was killed') as caught:
        launch.train(runner)
    assert caught.value.__cause__ is error
