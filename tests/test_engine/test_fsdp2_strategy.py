"""Sharded training gives the weights of one process with the same batches."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip('mmpose')
pytest.importorskip('mmseg')
pytest.importorskip('mmpretrain')

from sharded_steps import TASKS

RUNS = [f'2:{task}:fsdp2' for task in TASKS]
RUNS += ['2:pretrain:ddp', '2:pretrain:bf16', '4:pretrain:hsdp2', '4:pose:fsdp2']


@pytest.fixture(scope='module')
def trained(tmp_path_factory, repo_dir) -> Path:
    folder = tmp_path_factory.mktemp('sharded')
    script = str(repo_dir / 'tests/sharded_steps.py')
    runs = [*(f'1:{task}:one' for task in TASKS), *RUNS]
    done = subprocess.run(
        [sys.executable, script, str(folder), *runs],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.slow
@pytest.mark.parametrize('run', RUNS)
def test_weights_are_those_of_one_process(run, trained):
    """After 3 steps of clipped AdamW: weights, teacher, moments, norms."""
    world_size, task, kind = run.split(':')
    one = torch.load(trained / f'{task}-one-1.pth', weights_only=False)
    out = torch.load(trained / f'{task}-{kind}-{world_size}.pth', weights_only=False)
    state = {key.removeprefix('module.'): v for key, v in out['state'].items()}
    assert list(state) == list(one['state'])
    tolerance = 1e-3 if kind == 'bf16' else 1e-5
    for name, value in one['state'].items():
        if name != 'num_samples':  # of one process
            torch.testing.assert_close(state[name], value, rtol=0, atol=tolerance)
    assert out['norms'] == pytest.approx(one['norms'], rel=100 * tolerance)
    moments, expected = out['optimizer']['state'], one['optimizer']['state']
    assert moments.keys() == expected.keys()
    for index, values in expected.items():
        for name, value in values.items():
            assert moments[index][name].shape == value.shape
