"""Our installs, used from an empty folder as a user would."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

POSE = 'pose/sapiens2-tiny_udp-heatmap_1xb8_synthetic-humans-256x192.py'
RELEASED = 'pose/sapiens2-0.4b_udp-heatmap_8xb6-10k_humans308-1024x768.py'


@pytest.fixture(scope='module')
def source(repo_dir, tmp_path_factory) -> Path:
    """A copy of the repository, which a build may write into."""
    folder = tmp_path_factory.mktemp('source') / 'repo'
    for name in ('sapiens2_mm', 'configs', 'tools', 'projects'):
        shutil.copytree(repo_dir / name, folder / name, symlinks=True)
    for name in ('setup.cfg', 'pyproject.toml', 'README.md', 'LICENSE', 'NOTICE'):
        shutil.copy(repo_dir / name, folder / name)
    return folder


def install(source: Path, folder: Path, *options: str) -> Path:
    """Install us alone in a new environment that sees the packages of this one."""
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip', folder], check=True)
    base = dict(base=str(folder))
    python = Path(sysconfig.get_path('scripts', vars=base)) / 'python'
    site = Path(sysconfig.get_path('purelib', vars=base))
    (site / 'others.pth').write_text(sysconfig.get_path('purelib'))
    subprocess.run(
        [
            *(sys.executable, '-m', 'pip', '--python', str(python), 'install', '-q'),
            *('--no-build-isolation', '--no-deps', '--ignore-installed'),
            *(*options, str(source)),
        ],
        check=True,
        env={**os.environ, 'PIP_DISABLE_PIP_VERSION_CHECK': '1'},
    )
    return python


@pytest.fixture(scope='module')
def wheel(source, tmp_path_factory) -> Path:
    """The Python of an environment with our wheel."""
    return install(source, tmp_path_factory.mktemp('wheel'))


@pytest.fixture(scope='module')
def editable(source, tmp_path_factory) -> Path:
    """The Python of an environment with an editable install."""
    return install(source, tmp_path_factory.mktemp('editable'), '-e')


def run(python, cwd, *arguments) -> str:
    result = subprocess.run(
        [str(python), *map(str, arguments)],
        cwd=cwd,
        env={key: v for key, v in os.environ.items() if key != 'PYTHONPATH'},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-3000:]
    return result.stdout


def mim_folder(python, cwd) -> Path:
    code = 'import sapiens2_mm; print(sapiens2_mm.__path__[0])'
    return Path(run(python, cwd, '-c', code).strip()) / '.mim'


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


def test_wheel_ships_configs_tools_and_tables(wheel, tmp_path):
    mim = mim_folder(wheel, tmp_path)
    assert mim.is_relative_to(wheel.parent.parent)
    assert (mim / 'model-index.yml').is_file()
    assert (mim / 'tools' / 'train.py').is_file()
    assert (mim / 'configs' / POSE).is_file()
    assert (mim / 'configs' / '_base_' / 'default_runtime.py').is_file()
    weights = mim.parent / 'apis' / 'person_detectors' / 'movenet_multipose.tflite'
    assert weights.stat().st_size > 9e6


def test_wheel_renders_the_default_data(wheel, tmp_path):
    pytest.importorskip('anny')
    arguments = ('-m', 'projects.synthetic_humans', 'out', '--size', '64x48')
    run(wheel, tmp_path, *arguments, '--num-train', 1, '--num-val', 0)
    assert (tmp_path / 'out' / 'annotations' / 'train.json').is_file()


@pytest.mark.parametrize('kind', ['wheel', 'editable'])
def test_mmengine_finds_our_configs_in_a_process_without_us(kind, request, tmp_path):
    pytest.importorskip('mmpose')
    (tmp_path / 'mine.py').write_text(f"_base_ = 'sapiens2_mm::{POSE}'")
    code = f"""
from mmengine.config import Config
from mmengine.hub import get_config, get_model

assert Config.fromfile('mine.py').default_scope == 'mmpose'
model = get_model('sapiens2_mm::{POSE}')
print(type(model.backbone).__name__)
print(get_config('sapiens2_mm::{RELEASED}', pretrained=True).model_path)
"""
    out = run(request.getfixturevalue(kind), tmp_path, '-c', code).split('\n')
    assert 'Sapiens2' in out
    assert 'hf://facebook/sapiens2-pose-0.4b/sapiens2_0.4b_pose.safetensors' in out


@pytest.mark.parametrize('default_scope', ['mmpose', 'mmseg', 'mmpretrain'])
def test_inherited_config_trains_and_tests_anywhere(
    default_scope, wheel, data_dir, tmp_path
):
    pytest.importorskip(default_scope)
    config = tmp_path / 'mine_0.1b.py'  # a dot, as model sizes have
    config.write_text(
        f"_base_ = ['sapiens2_mm::{POSE}']\n"
        f'default_scope = {default_scope!r}\n'
        'train_cfg = dict(max_iters=1, val_interval=1)\n'
    )
    tools = mim_folder(wheel, tmp_path) / 'tools'
    options = ('--cfg-options', *data_options(data_dir))
    run(wheel, tmp_path, tools / 'train.py', config, *options)
    run(
        wheel,
        tmp_path,
        *(tools / 'test.py', config, 'work_dirs/mine_0.1b/iter_1.pth'),
        *('--work-dir', 'out', '--out', 'out.pkl', '--show-dir', 'show', *options),
        'train_dataloader.dataset.data_root=not_needed_to_test',
    )
    metrics = json.loads(next((tmp_path / 'out').glob('*/*.json')).read_text())
    assert 0 <= metrics['coco/AP'] <= 1
    assert (tmp_path / 'out.pkl').stat().st_size > 0
    assert len(list((tmp_path / 'show' / 'test').glob('*.png'))) == 2


def host_run(python, data_dir, tmp_path, name, host):
    """A config over ours and a function that runs a tool of a host on it."""
    config = tmp_path / 'mine.py'
    loader = dict(num_workers=0, persistent_workers=False, batch_size=2)
    loader['dataset'] = dict(data_root=str(data_dir / 'synthetic_humans'))
    config.write_text(
        f"_base_ = ['sapiens2_mm::{name}']\n"
        f'train_dataloader = {loader}\nval_dataloader = {loader}\n'
        'test_dataloader = val_dataloader\n'
        'train_cfg = dict(max_iters=1, val_interval=1)\n'
    )
    tools = Path(pytest.importorskip(host).__file__).parent / '.mim' / 'tools'
    if not tools.is_dir():
        pytest.skip(f'this {host} was installed without its tools')
    return lambda tool, *arguments: run(
        python, tmp_path, tools / tool, config, *arguments
    )


def test_tools_of_mmpose_take_our_configs(wheel, data_dir, tmp_path):
    name = 'pose/sapiens2-tiny_udp-heatmap_1xb8_humans308-256x192.py'
    tool = host_run(wheel, data_dir, tmp_path, name, 'mmpose')
    tool('train.py', '--work-dir', 'run')
    shown = ('--show-dir', 'show', '--dump', 'all.pkl', '--out', 'metrics.json')
    tool('test.py', 'run/iter_1.pth', '--work-dir', 'run', *shown)
    assert len(list((tmp_path / 'show' / 'test').glob('*.png'))) == 2
    assert 'coco/AP' in json.loads((tmp_path / 'metrics.json').read_text())
    browse = ('--output-dir', 'browsed', '--not-show', '--mode', 'transformed')
    tool('misc/browse_dataset.py', *browse)
    assert len(list((tmp_path / 'browsed').iterdir())) == 4
    assert 'Flops' in tool('analysis_tools/get_flops.py', '--input-shape', 256, 192)


def test_tools_of_mmseg_take_our_configs(wheel, data_dir, tmp_path):
    name = 'seg/sapiens2-tiny_deconv_1xb4_humans29-256x192.py'
    tool = host_run(wheel, data_dir, tmp_path, name, 'mmseg')
    tool('train.py', '--work-dir', 'run')
    shown = ('--show-dir', 'show', '--out', 'labels')
    tool('test.py', 'run/iter_1.pth', '--work-dir', 'run', *shown)
    assert len(list((tmp_path / 'show').rglob('*.png'))) == 2
    assert len(list((tmp_path / 'labels').glob('*.png'))) == 2
    tool('analysis_tools/browse_dataset.py', '--output-dir', 'browsed', '--not-show')
    assert len(list((tmp_path / 'browsed').iterdir())) == 4
