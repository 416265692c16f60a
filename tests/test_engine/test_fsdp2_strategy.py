"""Sharded training gives the weights of one process with the same batches."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

pytest.importorskip('mmpose')
pytest.importorskip('mmseg')
pytest.importorskip('mmpretrain')

from sharded_steps import TASKS

from sapiens2_mm.checkpoint import read_checkpoint

RUNS = [f'2:{task}:fsdp2' for task in TASKS]
RUNS += ['2:pretrain:ddp', '2:pretrain:bf16', '4:pretrain:hsdp2', '4:pose:fsdp2']

WHOLE = ['2:pretrain:fsdp2', '1:pretrain:one-resumed', '4:pretrain:fsdp2-resumed']
WHOLE += ['1:normal:one', '4:normal:fsdp2']


@pytest.fixture(scope='module')
def trained(tmp_path_factory, repo_dir) -> Path:
    folder = tmp_path_factory.mktemp('sharded')
    script = str(repo_dir / 'tests/sharded_steps.py')
    runs = [
        *(f'1:{task}:one' for task in TASKS),
        *RUNS,
        *(f'{run}:whole' for run in WHOLE),
    ]
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


@pytest.mark.slow
def test_a_sharded_run_goes_on_with_another_number_of_processes(trained):
    """Hooks that look at weights have all their processes; files are as of one."""
    sharded = trained / 'pretrain-fsdp2-2'
    end = read_checkpoint(sharded / 'iter_3.pth')['state_dict']
    logged = torch.load(trained / 'pretrain-fsdp2-2-whole.pth', weights_only=False)
    assert logged['train/backbone_grad_norm_contrast'] > 0.1
    assert list(sharded.glob('*/vis_data/vis_image/reconstruction_3.png'))
    for which, prefix in (('student', ''), ('teacher', 'teacher.')):
        weights = load_file(sharded / f'backbone_{which}.safetensors')
        for name, value in weights.items():
            assert torch.equal(value, end[f'{prefix}backbone.{name}'])
    for run in ('one-1', 'fsdp2-4'):
        path = trained / f'pretrain-{run}resumed' / 'iter_3.pth'
        other = read_checkpoint(path)['state_dict']
        for name, value in end.items():
            if name != 'num_samples':
                torch.testing.assert_close(other[name], value, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_validation_of_a_sharded_model(trained):
    """Four processes fill up six samples to eight, and count six."""
    one, sharded = (
        torch.load(trained / f'normal-{run}-whole.pth', weights_only=False)
        for run in ('one-1', 'fsdp2-4')
    )
    names = [name for name in one if name.startswith('val/normal')]
    assert names
    for name in names:
        assert sharded[name] == pytest.approx(one[name], rel=1e-5)
