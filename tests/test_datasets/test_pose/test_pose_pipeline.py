"""The shipped pose pipelines, from the file to the packed sample."""

import numpy as np
import pytest
import torch
from mmengine.config import Config

pytest.importorskip('mmpose')

from mmengine.dataset import Compose
from mmengine.registry import DefaultScope

from sapiens2_mm.registry import DATASETS

NAME = 'sapiens2-0.4b_udp-heatmap_8xb6-10k_humans308-1024x768.py'


@pytest.fixture(params=['mmpose', 'acme'])
def config(repo_dir, data_dir, request):
    cfg = Config.fromfile(repo_dir / 'configs/pose' / NAME)
    for loader in (cfg.train_dataloader, cfg.val_dataloader):
        loader.dataset.data_root = str(data_dir / 'synthetic_humans')
    with DefaultScope.overwrite_default_scope(request.param):
        yield cfg


def test_train_pipeline(config):
    np.random.seed(0)
    dataset = DATASETS.build(config.train_dataloader.dataset)
    for index in range(len(dataset)):
        packed = dataset[index]
        assert packed['inputs'].shape == (3, 1024, 768)
        assert packed['inputs'].dtype == torch.uint8
        sample = packed['data_samples']
        assert 'gt_fields' not in sample  # heatmaps are made on the device
        points = sample.gt_instances.transformed_keypoints[0]
        visible = sample.gt_instances.keypoints_visible[0]
        assert points.shape == (308, 2) and visible.shape == (308,)
        shown = points[visible > 0]
        assert ((shown >= 0) & (shown < (768, 1024))).all()
        assert len(sample.metainfo['flip_indices']) == 308


def test_test_pipeline_is_the_plain_crop(config):
    dataset = DATASETS.build(config.val_dataloader.dataset)
    sample = dataset[0]['data_samples']
    np.testing.assert_array_equal(dataset[0]['inputs'], dataset[0]['inputs'])
    instances = sample.gt_instances
    extent = instances.bboxes[0, 2:] - instances.bboxes[0, :2]
    scale = sample.metainfo['input_scale']
    assert np.isclose(scale, 1.25 * extent).any() and (scale >= 1.24 * extent).all()
    assert scale[0] / scale[1] == pytest.approx(0.75, rel=1e-5)


def test_classic_targets_stay_possible(config):
    steps = list(config.test_pipeline)
    codec = config.model.head.decoder
    steps.insert(-1, dict(type='mmpose.GenerateTarget', encoder=codec))
    config.val_dataloader.dataset.pipeline = steps
    sample = DATASETS.build(config.val_dataloader.dataset)[0]['data_samples']
    assert sample.gt_fields.heatmaps.shape == (308, 256, 192)
    visible = torch.from_numpy(sample.gt_instances.keypoints_visible[0])
    peaks = sample.gt_fields.heatmaps.amax(dim=(1, 2))
    assert (peaks[visible == 0] == 0).all() and (peaks[visible > 0] > 0.9).all()
    weights = sample.gt_instance_labels.keypoint_weights[0]
    assert (weights[visible == 0] == 0).all()


def test_target_generation_at_inference_is_named(config):
    steps = list(config.test_pipeline)
    codec = config.model.head.decoder
    steps.insert(-1, dict(type='mmpose.GenerateTarget', encoder=codec))
    sample = dict(
        img=np.zeros((64, 48, 3), dtype=np.uint8),
        bbox=np.float32([[0, 0, 48, 64]]),
        bbox_score=np.ones(1, dtype=np.float32),
        flip_indices=list(range(308)),
    )
    with pytest.raises(ValueError, match='GenerateTarget'):
        Compose(steps)(sample)


def test_visibility_of_a_crop(mini_coco, table5, config):
    """v=0, v=0 off the origin, v=1, outside the image, inside but outside the crop."""
    points = [0, 0, 0, 20, 20, 0, 20, 30, 1, 60, 30, 2, 46, 62, 2]
    path = mini_coco(dict(keypoints=points, bbox=[14, 20, 12, 16]))
    dataset = config.val_dataloader.dataset
    dataset.update(data_root=str(path.parent), ann_file=path.name, metainfo=table5)
    steps = list(config.test_pipeline)
    codec = config.model.head.decoder
    steps.insert(-1, dict(type='mmpose.GenerateTarget', encoder=codec))
    dataset.pipeline = steps
    sample = DATASETS.build(dataset)[0]['data_samples']
    weights = sample.gt_instance_labels.keypoint_weights[0]
    assert weights.tolist() == [0, 0, 1, 0, 0]
    peaks = sample.gt_fields.heatmaps.amax(dim=(1, 2))
    assert (peaks > 0).tolist() == [False, False, True, False, False]
