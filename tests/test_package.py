"""The wheel, used from an empty folder as a user would."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

POSE = 'pose/sapiens2-tiny_udp-heatmap_1xb8_synthetic-humans-256x192.py'


@pytest.fixture(scope='module')
def installed(repo_dir, tmp_path_factory) -> Path:
    """A folder that holds what ``pip install WHEEL`` puts into site-packages."""
    source = tmp_path_factory.mktemp('source') / 'repo'
    keep = ('sapiens2_mm', 'configs', 'tools', 'setup.cfg', 'pyproject.toml')
    for name in (*keep, 'README.md'):
        if (repo_dir / name).is_dir():
            shutil.copytree(repo_dir / name, source / name, symlinks=True)
        else:
            shutil.copy(repo_dir / name, source / name)
    folder = tmp_path_factory.mktemp('site')
    subprocess.run(
        [
            *(sys.executable, '-m', 'pip', 'install', '-q', '--no-build-isolation'),
            *('--no-deps', '--target', str(folder), str(source)),
        ],
        check=True,
        env={**os.environ, 'PIP_DISABLE_PIP_VERSION_CHECK': '1'},
    )
    return folder


def run(installed, cwd, *arguments) -> str:
    result = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, 'PYTHONPATH': str(installed)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


def data_options(data_dir) -> list[str]:
    return [
        f'{split}_dataloader.{option}'
        for split in ('train', 'val', 'test')
        for option in (
            f'dataset.data_root={data_dir / "synthetic_humans"}',
            'num_workers=0',
            'persistent_workers=False',
            'batch_size=2',
        )
    ]


def test_wheel_ships_configs_tools_and_tables(installed):
    mim = installed / 'sapiens2_mm' / '.mim'
    assert (mim / 'model-index.yml').is_file()
    assert (mim / 'tools' / 'train.py').is_file()
    assert (mim / 'configs' / POSE).is_file()
    assert (mim / 'configs' / '_base_' / 'default_runtime.py').is_file()
    out = run(
        installed,
        installed.parent,
        '-c',
        'import sapiens2_mm; print(sapiens2_mm.__file__)',
    )
    assert Path(out.strip()).is_relative_to(installed)


@pytest.mark.parametrize('default_scope', ['mmpose', 'mmseg', 'mmpretrain'])
def test_inherited_config_trains_and_tests_anywhere(
    default_scope, installed, data_dir, tmp_path
):
    pytest.importorskip(default_scope)
    config = tmp_path / 'mine_0.1b.py'  # a dot, as model sizes have
    base = installed / 'sapiens2_mm' / '.mim' / 'configs' / POSE
    if default_scope == 'mmpose':
        base = f'sapiens2_mm::{POSE}'
    config.write_text(
        f"_base_ = ['{base}']\n"
        f'default_scope = {default_scope!r}\n'
        'train_cfg = dict(max_iters=1, val_interval=1)\n'
    )
    tools = installed / 'sapiens2_mm' / '.mim' / 'tools'
    options = ('--cfg-options', *data_options(data_dir))
    run(installed, tmp_path, str(tools / 'train.py'), str(config), *options)
    checkpoint = tmp_path / 'work_dirs' / 'mine_0.1b' / 'iter_1.pth'
    run(
        installed,
        tmp_path,
        *(str(tools / 'test.py'), str(config), str(checkpoint)),
        *('--work-dir', str(tmp_path / 'out'), '--out', str(tmp_path / 'out.pkl')),
        *('--show-dir', str(tmp_path / 'show'), *options),
        'train_dataloader.dataset.data_root=not_needed_to_test',
    )
    metrics = json.loads(next((tmp_path / 'out').glob('*/*.json')).read_text())
    assert 0 <= metrics['coco/AP'] <= 1
    assert (tmp_path / 'out.pkl').stat().st_size > 0
    assert len(list((tmp_path / 'show' / 'test').glob('*.png'))) == 2
