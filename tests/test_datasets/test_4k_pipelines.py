"""Training samples at 4096x3072, with all sizes at 1/16."""

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope

from sapiens2_mm.apis import find_model
from sapiens2_mm.datasets.io import image as image_files
from sapiens2_mm.registry import DATASETS

for host in ('mmpose', 'mmseg'):
    pytest.importorskip(host)

SIZES = {'size', 'scale', 'crop_size', 'input_size'}


def smaller(node):
    """A config with every size of an image divided by 16."""
    if isinstance(node, list | tuple):
        return [smaller(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: tuple(side // 16 for side in value) if key in SIZES else smaller(value)
        for key, value in node.items()
    }


@pytest.mark.parametrize(
    'task', ['seg', 'pose', 'normal', 'albedo', 'matting', 'pointmap']
)
def test_files_are_decoded_once_and_targets_have_half_the_sides(
    task, data_dir, monkeypatch
):
    cfg = Config.fromfile(find_model(f'sapiens2-1b-4k_{task}').config)
    init_default_scope(cfg.default_scope)
    options = smaller(cfg.train_dataloader.dataset.to_dict())
    options['data_root'] = str(data_dir / 'synthetic_humans')
    dataset = DATASETS.build(options)
    opened, open_image = [], image_files.open_image

    def recorded(data, path, reduction=None):
        opened.append(path)
        return open_image(data, path, reduction)

    for module in ('image', 'label_image', 'array_file'):
        name = f'sapiens2_mm.datasets.io.{module}.open_image'
        monkeypatch.setattr(name, recorded, raising=False)
    np.random.seed(3)
    torch.manual_seed(3)
    sample = dataset[0]
    assert sample['inputs'].shape == (3, 256, 192)
    assert sample['inputs'].dtype == torch.uint8
    assert len(opened) == len(set(opened)) > 0
    fields = sample['data_samples']
    if task == 'pose':
        assert fields.gt_instances.transformed_keypoints.max() < 256
        return
    if task == 'seg':
        labels = fields.gt_sem_seg.data
        assert labels.shape == (1, 128, 96)
        assert set(labels.unique().tolist()) <= {*range(29), 255}
        return
    maps = [value for name, value in fields.items() if name.startswith('gt_')]
    shapes = {tuple(value.shape[1:]) for value in maps if value.ndim == 3}
    assert shapes == {(128, 96)}
