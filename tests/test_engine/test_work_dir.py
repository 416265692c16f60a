import os
import signal
import subprocess
import sys

import pytest
from toy_run import StopAfter, toy_runner

from sapiens2_mm.checkpoint import CheckpointError
from sapiens2_mm.engine.work_dir import claim, release

HOLD = """
import os, sys, time
from sapiens2_mm.engine.work_dir import claim
claim(sys.argv[1])
if os.fork() == 0:  # as a loader process does, that outlives its trainer
    time.sleep(60)
print('claimed', flush=True)
time.sleep(60)
"""


@pytest.fixture
def other_run(tmp_path, repo_dir):
    """A process that holds the work folder, in a process group of its own."""
    process = subprocess.Popen(
        [sys.executable, '-c', HOLD, str(tmp_path)],
        cwd=repo_dir,
        env={**os.environ, 'PYTHONPATH': str(repo_dir)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while process.stdout.readline() not in ('claimed\n', ''):
        pass
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_a_second_run_is_refused_until_the_first_is_killed(other_run, tmp_path):
    message = rf'{tmp_path} is in use by another run \(process {other_run.pid} on '
    with pytest.raises(RuntimeError, match=message):
        toy_runner(tmp_path, iterations=1).train()
    assert not list(tmp_path.glob('*.pth'))
    other_run.kill()
    other_run.wait()
    toy_runner(tmp_path, iterations=1).train()
    assert (tmp_path / 'iter_1.pth').is_file()


def test_a_folder_can_be_claimed_again(tmp_path):
    for _ in range(2):
        claim(tmp_path)  # by the run of a process whose former run ended in an error
    release(tmp_path)
    release(tmp_path)


def cut(path):
    path.write_bytes(path.read_bytes()[:1000])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


@pytest.mark.parametrize('damage', [cut, flip, lambda p: p.write_bytes(b''), os.remove])
def test_a_damaged_checkpoint_is_said_and_the_one_before_is_taken(
    damage, tmp_path, lines
):
    toy_runner(tmp_path, iterations=4, hooks=(StopAfter(3),)).train()
    damage(tmp_path / 'iter_3.pth')
    lines.clear()
    runner = toy_runner(tmp_path, iterations=4, resume=True)
    runner.train()
    assert runner._load_from == str(tmp_path / 'iter_2.pth')
    assert runner.iter == 4
    text = f'cannot resume from {tmp_path}/iter_3.pth, so from the one before: '
    assert [line for _, line in lines if line.startswith(text)]


def test_a_run_without_an_intact_checkpoint_is_not_started_anew(tmp_path):
    toy_runner(tmp_path, iterations=2).train()
    for number in (1, 2):
        cut(tmp_path / f'iter_{number}.pth')
    with pytest.raises(CheckpointError, match=f'none of .* in {tmp_path} can be read'):
        toy_runner(tmp_path, iterations=4, resume=True).train()
