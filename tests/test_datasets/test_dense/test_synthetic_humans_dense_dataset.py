import shutil

import pytest
import torch

from sapiens2_mm.datasets import SyntheticHumansDenseDataset
from sapiens2_mm.registry import DATASETS


def step(name, **kwargs):
    return dict(type=f'sapiens2_mm.{name}', **kwargs)


def pipeline(fields, with_camera, *middle):
    return [
        step('LoadImage'),
        step('LoadDenseAnnotations', fields=fields, with_camera=with_camera),
        *middle,
        step('PackDenseInputs'),
    ]


def test_synthetic_humans(data_dir):
    dataset = SyntheticHumansDenseDataset(
        str(data_dir / 'synthetic_humans'),
        'annotations/train.json',
        pipeline=pipeline(
            ['normal', 'depth', 'albedo'],
            True,
            step('Letterbox', size=(128, 96)),
            step('PointmapTarget', min_canonical_depth=0.04),
            step('FilterByMask'),
        ),
    )
    assert len(dataset) == 4
    for index in range(4):
        sample = dataset[index]['data_samples']
        mask = sample.gt_mask[0]
        assert 0.05 < mask.float().mean() < 0.96
        normals = sample.gt_normal[:, mask]
        assert (normals.norm(dim=0) - 1).abs().max() < 1e-4
        # in the camera frame, visible surfaces face the camera
        points = sample.gt_pointmap[:, mask]
        facing = (normals * points).sum(0) < 0
        assert facing.float().mean() > 0.98
        assert points[2].min() > 0.3 and points[2].max() < 13
        # points project onto their own pixels
        pixels = sample.intrinsics @ points
        rows, cols = torch.nonzero(mask).T
        assert (pixels[0] / pixels[2] - cols).abs().max() < 1e-2
        assert (pixels[1] / pixels[2] - rows).abs().max() < 1e-2
        assert sample.gt_albedo.min() >= 0 and sample.gt_albedo.max() <= 1


def test_synthetic_normals_agree_with_the_depth(data_dir):
    """Stored normals and those of the points differ by few degrees at full size."""
    dataset = SyntheticHumansDenseDataset(
        str(data_dir / 'synthetic_humans'),
        'annotations/train.json',
        pipeline=pipeline(['normal', 'depth'], True, step('PointmapTarget')),
    )
    sample = dataset[0]['data_samples']
    points, mask = sample.gt_pointmap, sample.gt_mask[0]
    right = points[:, :-1, 1:] - points[:, :-1, :-1]
    down = points[:, 1:, :-1] - points[:, :-1, :-1]
    normals = -torch.nn.functional.normalize(torch.cross(right, down, dim=0), dim=0)
    inner = mask[:-1, :-1] & mask[1:, :-1] & mask[:-1, 1:]
    cosine = (normals * sample.gt_normal[:, :-1, :-1]).sum(0)[inner]
    assert cosine.clamp(-1, 1).acos().rad2deg().median() < 8


def test_synthetic_errors(data_dir, tmp_path):
    with pytest.raises(FileNotFoundError, match=r'train\.json'):
        SyntheticHumansDenseDataset(str(tmp_path), 'annotations/train.json')
    shutil.copytree(data_dir / 'synthetic_humans', tmp_path / 'set')
    (tmp_path / 'set' / 'annotations' / 'none.json').write_text('{"images": []}')
    with pytest.raises(ValueError, match=r'none\.json lists no image'):
        SyntheticHumansDenseDataset(str(tmp_path / 'set'), 'annotations/none.json')
    for content, message in {
        '{"images": [': 'not a readable JSON file',
        '{}': 'images must be a list, got nothing',
        '{"images": [{"file_name": "a.jpg"}]}': 'image 0: camera must be an object',
    }.items():
        (tmp_path / 'set' / 'annotations' / 'none.json').write_text(content)
        with pytest.raises(ValueError, match=rf'none\.json.*{message}'):
            SyntheticHumansDenseDataset(str(tmp_path / 'set'), 'annotations/none.json')


@pytest.mark.parametrize('task', ['normal', 'pointmap', 'albedo', 'depth'])
def test_shipped_pipelines_run(task, data_dir, repo_dir):
    """The official train and test pipelines, on the small samples."""
    from mmengine.config import Config

    (path,) = (repo_dir / 'configs' / task).glob('sapiens2-0.4b_*.py')
    cfg = Config.fromfile(path)
    for name in ('train_dataloader', 'test_dataloader'):
        config = cfg[name].dataset
        config.data_root = str(data_dir / 'synthetic_humans')
        dataset = DATASETS.build(config)
        data = dataset[0]
        assert data['inputs'].shape == (3, 1024, 768)
        sample = data['data_samples']
        size = (1024, 768) if name == 'train_dataloader' else (384, 288)
        assert sample.gt_mask.shape[1:] == size
        field = {'pointmap': 'gt_pointmap', 'depth': 'gt_depth'}.get(task, f'gt_{task}')
        assert sample.get(field).shape[1:] == size
