"""The memory that the segmentation losses and predictions save."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip('mmseg')


def ratio(repo_dir, *command) -> float:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=repo_dir,
        env={**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': str(repo_dir)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert 'DIFFER' not in done.stdout
    (value,) = re.findall(r'peak memory, ours / \w+: ([\d.]+)', done.stdout)
    return float(value)


@pytest.mark.slow
def test_losses_take_half_of_the_one_hot_form(repo_dir):
    assert ratio(repo_dir, 'tools/benchmark/seg_loss.py') <= 0.5


@pytest.mark.slow
def test_large_picture_takes_little_of_the_plain_path(repo_dir):
    tool = 'tools/benchmark/seg_predict.py'
    assert ratio(repo_dir, tool, '--modes', 'whole') < 0.4


@pytest.mark.slow
def test_windows_over_a_picture_take_little_of_the_plain_path(repo_dir):
    tool = 'tools/benchmark/seg_predict.py'
    assert ratio(repo_dir, tool, '--modes', 'slide', '--size', '1536', '2048') < 0.4
