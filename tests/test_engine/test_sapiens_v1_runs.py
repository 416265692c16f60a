"""Each task of the first Sapiens trains a step, is validated and predicts."""

import numpy as np
import pytest
import torch
from mmengine.runner import Runner
from tiny_sapiens_v1 import SIZE, Reference, small_config

from sapiens2_mm.apis import Inferencer
from sapiens2_mm.checkpoint import CheckpointError, read_checkpoint
from sapiens2_mm.datasets.metainfo.humans29 import METAINFO, SOURCES

for host in ('mmpretrain', 'mmpose', 'mmseg'):
    pytest.importorskip(host)

METRICS = {
    'pose': 'coco/AP',
    'seg': 'mIoU',
    'normal': 'normal/normal_mae',
    'depth': 'depth/abs_rel',
}


@pytest.fixture(params=METRICS)
def run(request, repo_dir, data_dir, tmp_path):
    """Task, and its released config in small, for one step on the tests' people."""
    cfg = small_config(repo_dir, request.param)
    for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        cfg[name].update(batch_size=2, num_workers=0, persistent_workers=False)
        cfg[name].dataset.data_root = str(data_dir / 'synthetic_humans')
    cfg.train_cfg.update(max_iters=1, val_interval=1)
    cfg.default_hooks.checkpoint.interval = 1
    cfg.default_hooks.logger.interval = 1
    cfg.work_dir = str(tmp_path / 'work')
    cfg.experiment_name = cfg.visualizer.name = f'{request.param}-{tmp_path.name}'
    return request.param, cfg


def test_train_from_a_pretrained_file_and_predict(run, data_dir, tmp_path):
    task, cfg = run
    from sapiens2_mm.models import SapiensV1

    arch = dict(cfg.model.backbone.arch)
    pretrained = SapiensV1(arch, img_size=64, with_cls_token=True)
    pretrained.init_weights()
    torch.save(pretrained.state_dict(), tmp_path / 'clean.pth')
    cfg.load_from = str(tmp_path / 'clean.pth')
    runner = Runner.from_cfg(cfg)
    runner.train()
    for name in ('train/loss', f'val/{METRICS[task]}'):
        assert np.isfinite(runner.message_hub.get_scalar(name).current())
    before, after = pretrained.layers[0].ln1.bias, runner.model.backbone.layers[0]
    assert not torch.equal(before, after.ln1.bias)

    saved = read_checkpoint(tmp_path / 'work' / 'iter_1.pth')['state_dict']._metadata
    assert saved['backbone']['patch_padding'] == cfg.model.backbone.patch_padding
    inferencer = Inferencer(cfg, str(tmp_path / 'work' / 'iter_1.pth'))
    image = data_dir / 'synthetic_humans' / 'rgb' / '000004.jpg'
    options = dict(whole_image=True) if task == 'pose' else {}
    (result,) = inferencer(str(image), **options)
    height, width = result.picture.size
    if task == 'pose':
        assert result.keypoints.shape == (1, 308, 2)
    elif task == 'seg':
        assert result.labels.shape == (height, width) and result.labels.max() < 28
    else:
        shape = dict(normal=(3, height, width), depth=(1, height, width))[task]
        assert result.maps[task].shape == shape
    assert inferencer.draw(result).shape[0] == height


def test_an_official_file_of_another_task_is_refused(run, tmp_path):
    task, cfg = run
    other = 'depth' if task == 'normal' else 'normal'
    torch.save(Reference(other).state_dict(), tmp_path / 'official.pth')
    with pytest.raises(CheckpointError, match='does not fit the model'):
        Inferencer(cfg, str(tmp_path / 'official.pth'))


def test_28_classes_in_the_order_of_the_release(repo_dir):
    cfg = small_config(repo_dir, 'seg')
    classes = cfg.train_dataloader.dataset.metainfo.classes
    assert len(classes) == len(SOURCES['sapiens_v1_28']) == 28
    ids = [METAINFO['classes'].index(name) for name in classes]
    assert ids == list(SOURCES['sapiens_v1_28'].values())
    meta = Inferencer(cfg).model.dataset_meta
    assert len(meta['palette']) == 28
    from sapiens2_mm.datasets.seg.seg_classes import flip_pairs

    pairs = flip_pairs(meta['classes'], METAINFO['swap_classes'], METAINFO['classes'])
    assert sorted(pairs) == [(n, n + 9) for n in range(4, 12)]
    assert tuple(cfg.model.backbone.img_size) == SIZE
