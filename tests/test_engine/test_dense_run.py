"""Whole runs of dense regression at tiny size: train, validate, test, draw."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
from broken_images import stops_with_finite_weights
from mmengine.config import Config
from mmengine.runner import Runner
from PIL import Image

from sapiens2_mm.engine import launch

TASKS = {
    'normal': 'normal/normal_mae',
    'pointmap': 'pointmap/l2_mean',
    'albedo': 'albedo/psnr',
    'matting': 'matting/alpha_mae',
    'depth': 'depth/abs_rel',
}


@pytest.fixture
def make_config(repo_dir: Path, data_dir: Path, tmp_path: Path):
    """The tiny config of a task, made smaller, on the six samples of the tests."""

    def make(task: str, name: str) -> Config:
        (path,) = (repo_dir / 'configs' / task).glob('sapiens2-tiny_*.py')
        cfg = Config.fromfile(path)
        cfg.model.backbone.arch = dict(
            embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64
        )
        cfg.model.decode_head.update(
            in_channels=32, upsample_channels=(8, 8, 8, 8), conv_out_channels=(8,)
        )
        cfg.work_dir = str(tmp_path / name)
        cfg.experiment_name = f'{task}-{name}-{tmp_path.name}'
        for loader in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
            cfg[loader].update(batch_size=2, num_workers=0, persistent_workers=False)
            cfg[loader].dataset.data_root = str(data_dir / 'synthetic_humans')
        cfg.train_cfg.update(max_iters=2, val_interval=2)
        cfg.default_hooks.checkpoint.interval = 2
        cfg.default_hooks.logger.interval = 1
        cfg.visualizer.name = cfg.experiment_name
        return cfg

    return make


@pytest.mark.parametrize('task', TASKS)
@pytest.mark.parametrize('amp', [False, True])
def test_train_test_and_draw(task, amp, make_config, tmp_path):
    cfg = make_config(task, f'amp{amp}')
    if amp:
        launch.use_bf16_autocast(cfg)
    cfg.default_hooks.visualization.update(enable=True, draw_gt=True)
    runner = Runner.from_cfg(cfg)
    runner.train()
    metrics = runner.test()
    assert math.isfinite(metrics[TASKS[task]])
    assert (Path(cfg.work_dir) / 'iter_2.pth').is_file()
    pictures = list(Path(runner.log_dir).rglob('vis_image/test_*.png'))
    names = {p.stem for p in pictures}  # of val.json, after two iterations
    assert names == {'test_000004_2', 'test_000005_2'}
    width, height = Image.open(pictures[0]).size
    assert height == 384 and width >= 3 * 288  # image, annotation, prediction


LOSSES = {
    'normal': 'loss_cosine',
    'pointmap': 'loss_shift_invariant',
    'albedo': 'loss_l1',
    'matting': 'loss_l1_pha',
    'depth': 'loss_silog',
}


@pytest.mark.parametrize('task', TASKS)
def test_a_loss_that_is_not_finite_stops_the_run(task, make_config):
    cfg = make_config(task, 'broken')
    cfg.train_cfg.update(max_iters=9, val_interval=99)
    cfg.default_hooks.checkpoint.interval = 1
    stops_with_finite_weights(Runner.from_cfg(cfg), LOSSES[task], r'00000\d')


@pytest.mark.slow
def test_no_host_is_needed(make_config, tmp_path):
    """Train, validate, test, draw and dump where no host can be imported."""
    paths = []
    for task in TASKS:
        cfg = make_config(task, 'alone')
        cfg.work_dir = str(tmp_path / task)
        launch.draw_predictions(cfg, str(tmp_path / task / 'pictures'))
        launch.dump_predictions(cfg, str(tmp_path / task / 'out.pkl'))
        paths.append(str(tmp_path / f'{task}.py'))
        cfg.dump(paths[-1])
    script = tmp_path / 'run.py'
    script.write_text(
        'import sys\n'
        "hosts = {'mmpose', 'mmseg', 'mmpretrain', 'mmdet'}\n"
        'class Block:\n'
        '    def find_spec(self, name, path=None, target=None):\n'
        "        assert name.split('.')[0] not in hosts, name\n"
        'sys.meta_path.insert(0, Block())\n'
        'from mmengine.config import Config\n'
        'from sapiens2_mm.engine import launch\n'
        'for path in sys.argv[1:]:\n'
        '    runner = launch.build_runner(Config.fromfile(path))\n'
        '    runner.train()\n'
        '    runner.test()\n'
    )
    done = subprocess.run(
        [sys.executable, str(script), *paths],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for task in TASKS:
        assert (tmp_path / task / 'out.pkl').stat().st_size > 0
        assert len(list((tmp_path / task / 'pictures' / 'test').glob('*.png'))) == 2


@pytest.mark.slow
@pytest.mark.parametrize('task', ['pointmap', 'matting'])
def test_two_processes(task, make_config, tmp_path):
    """Every parameter takes part, so no search for unused ones is needed."""
    cfg = make_config(task, 'two')
    cfg.launcher = 'pytorch'
    cfg.dump(tmp_path / 'config.py')
    script = tmp_path / 'run.py'
    script.write_text(
        'import sys\n'
        'from mmengine.config import Config\n'
        'from sapiens2_mm.engine import launch\n'
        'launch.build_runner(Config.fromfile(sys.argv[1])).train()\n'
    )
    run = ['-m', 'torch.distributed.run', '--standalone', '--nproc_per_node=2']
    done = subprocess.run(
        [sys.executable, *run, str(script), str(tmp_path / 'config.py')],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / 'two' / 'iter_2.pth').is_file()
