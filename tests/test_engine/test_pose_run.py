"""Whole runs of the pose task, by the functions behind tools/ and by tools/."""

import json
import logging
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from broken_images import stops_with_finite_weights
from mmengine.logging import MMLogger
from mmengine.runner import Runner

from sapiens2_mm.engine import launch

pytest.importorskip('mmpose')
pytest.importorskip('pycocotools')


def test_amp_and_resume(pose_config):
    launch.use_bf16_autocast(pose_config)
    Runner.from_cfg(pose_config).train()
    pose_config.train_cfg.max_iters = 3
    launch.resume(pose_config, 'auto')
    runner = Runner.from_cfg(pose_config)
    runner.train()
    assert runner.iter == 3
    assert runner.message_hub.get_scalar('train/loss_kpt').current() > 0
    assert all(p.dtype == torch.float32 for p in runner.model.parameters())
    assert 0 <= runner.message_hub.get_scalar('val/coco/AP').current() <= 1


def test_a_loss_that_is_not_finite_stops_the_run(pose_config):
    pose_config.train_cfg.update(max_iters=9, val_interval=99)
    pose_config.default_hooks.checkpoint.interval = 1
    runner = Runner.from_cfg(pose_config)
    stops_with_finite_weights(runner, 'loss_kpt', r'\d\.png')


def test_validation_alone_saves_no_best_checkpoint(pose_config):
    assert 'save_best' in pose_config.default_hooks.checkpoint
    assert Runner.from_cfg(pose_config).val()['coco/AP'] >= 0
    assert not list(Path(pose_config.work_dir).rglob('*.pth'))


def test_all_views_of_a_test(pose_config, tmp_path):
    """``tools/test.py --tta --show-dir --out`` on two files of the same ids."""
    part = pose_config.test_dataloader.dataset
    other = Path(part.data_root, 'other.json')
    other.write_bytes(other.with_name('annotations.json').read_bytes())
    parts = [part, {**part, 'ann_file': 'other.json'}]
    pose_config.test_dataloader.dataset = dict(type='ConcatDataset', datasets=parts)
    launch.use_tta(pose_config)
    launch.draw_predictions(pose_config, str(tmp_path / 'pictures'))
    launch.dump_predictions(pose_config, str(tmp_path / 'all.pkl'))
    assert 0 <= launch.build_runner(pose_config).test()['coco/AP'] <= 1
    assert len(list((tmp_path / 'pictures').rglob('*.png'))) == 8
    found = pickle.loads((tmp_path / 'all.pkl').read_bytes())
    assert [sample['pred_instances']['keypoints'].shape for sample in found] == [
        (1, 5, 2)
    ] * 8
    assert not any('pred_fields' in sample for sample in found)


def test_every_parameter_gets_a_gradient(pose_config):
    runner = Runner.from_cfg(pose_config)
    runner.model.train()
    batch = next(iter(runner.build_dataloader(pose_config.train_dataloader)))
    data = runner.model.data_preprocessor(batch, True)
    losses = runner.model(**data, mode='loss')
    losses['loss_kpt'].backward()
    unused = [n for n, p in runner.model.named_parameters() if p.grad is None]
    assert unused == []


def test_best_checkpoint_by_a_metric_that_does_not_exist(pose_config, caplog):
    """All persons are large: COCO's metric of the medium ones is -1."""
    pose_config.default_hooks.checkpoint.save_best = 'coco/AP (M)'
    path = Path(pose_config.val_dataloader.dataset.data_root, 'annotations.json')
    content = json.loads(path.read_text())
    for annotation in content['annotations']:
        annotation['area'] = 100**2
    path.write_text(json.dumps(content))
    runner = Runner.from_cfg(pose_config)
    MMLogger.get_current_instance().addHandler(caplog.handler)
    with caplog.at_level(logging.WARNING):
        runner.train()
    assert runner.message_hub.get_scalar('val/coco/AP (M)').current() == -1
    assert "AP (M)'" in caplog.text and 'do not choose a best checkpoint' in caplog.text


@pytest.mark.slow
def test_two_processes_train_and_test(pose_config, repo_dir, tmp_path):
    """As one process: every sample tested once, no parameter unused."""
    pose_config.dump(tmp_path / 'config.py')
    env = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': str(repo_dir)}

    def run(num_processes, tool, *args):
        command = [sys.executable]
        if num_processes > 1:
            command += ['-m', 'torch.distributed.run', '--standalone']
            command += [f'--nproc_per_node={num_processes}']
            args = (*args, '--launcher', 'pytorch')
        done = subprocess.run(
            [*command, str(repo_dir / 'tools' / tool), str(tmp_path / 'config.py')]
            + [str(arg) for arg in args],
            env=env,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout + done.stderr

    run(2, 'train.py', '--work-dir', tmp_path / 'work')
    checkpoint = tmp_path / 'work/iter_2.pth'
    metrics = []
    for number in (1, 2):
        out = tmp_path / f'{number}.pkl'
        pictures = tmp_path / f'pictures{number}'
        log = run(
            number, 'test.py', checkpoint, '--out', out, '--show-dir', pictures,
            '--work-dir', tmp_path / f'test{number}',
        )  # fmt: skip
        assert len(pickle.loads(out.read_bytes())) == 4
        names = sorted(path.name[0] for path in pictures.rglob('*.png'))
        assert names == ['0', '1', '2', '3']
        line = next(x for x in log.splitlines() if 'coco/AP:' in x)
        metrics.append(line.split('coco/AP:')[1].split('data_time')[0])
        assert math.isfinite(float(metrics[-1].split()[0]))
    assert metrics[0] == metrics[1]
