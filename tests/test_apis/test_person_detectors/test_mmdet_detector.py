from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.structures import InstanceData
from torch import nn

from sapiens2_mm.apis import MMDetDetector

IMAGE = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
PIPELINE = [dict(type='LoadImageFromFile'), dict(type='Resize', scale=(40, 30))]


class FixedModel(nn.Module):
    """A model with mmdet's interface that finds always the same."""

    def __init__(self, classes, boxes, labels, scores, key='classes'):
        super().__init__()
        dataset = dict(pipeline=PIPELINE)
        self.cfg = Config(dict(test_dataloader=dict(dataset=dataset)))
        self.dataset_meta = {key: classes}
        self.found = InstanceData(
            bboxes=torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4),
            labels=torch.tensor(labels, dtype=torch.int64),
            scores=torch.tensor(scores, dtype=torch.float32),
        )

    def test_step(self, data):
        assert not torch.is_grad_enabled()
        (image,) = data['img']
        assert image.shape == (30, 40, 3)
        return [SimpleNamespace(pred_instances=self.found)]


@pytest.mark.parametrize('key', ['classes', 'CLASSES'])
def test_only_people(key):
    boxes = [[10, 10, 40, 50], [5, 5, 30, 30], [50, 5, 79, 59]]
    model = FixedModel(('dog', 'person'), boxes, [1, 0, 1], [0.5, 0.9, 0.75], key)
    detector = MMDetDetector(model)
    assert detector(IMAGE).tolist() == [[*boxes[2], 0.75], [*boxes[0], 0.5]]
    assert detector.name == 'FixedModel'


def test_nobody():
    assert MMDetDetector(FixedModel(('person',), [], [], []))(IMAGE).shape == (0, 5)


def test_model_without_people():
    with pytest.raises(ValueError, match=r'"person", its metainfo has \[\'cat\'\]; c'):
        MMDetDetector(FixedModel(['cat'], [], [], []))


@pytest.fixture(scope='module')
def rtmdet(tmp_path_factory):
    """Config and checkpoint of RTMDet-tiny, random but for boxes of some size."""
    pytest.importorskip('mmdet')
    from mmdet.registry import MODELS
    from mmengine.registry import DefaultScope

    config = files('mmdet') / '.mim/configs/rtmdet/rtmdet_tiny_8xb32-300e_coco.py'
    cfg = Config.fromfile(config)
    cfg.model.backbone.pop('init_cfg')
    torch.manual_seed(0)
    with DefaultScope.overwrite_default_scope('mmdet'):
        model = MODELS.build(cfg.model)
    for cls, reg in zip(model.bbox_head.rtm_cls, model.bbox_head.rtm_reg, strict=True):
        nn.init.normal_(cls.weight, std=0.05)
        nn.init.zeros_(cls.bias)
        nn.init.constant_(reg.bias, 2)
    checkpoint = tmp_path_factory.mktemp('rtmdet') / 'rtmdet.pth'
    torch.save(dict(state_dict=model.state_dict()), checkpoint)
    return config, checkpoint


@pytest.mark.slow
def test_equals_mmdet(rtmdet):
    """A real detector with mmcv-lite: its own interface finds the same boxes."""
    from mmdet.apis import inference_detector, init_detector

    detector = MMDetDetector(*rtmdet, score_thr=0, nms_thr=1)
    assert detector.name == 'rtmdet_tiny_8xb32-300e_coco'
    image = np.random.default_rng(0).integers(0, 256, (120, 160, 3), dtype=np.uint8)
    found = detector(image)
    theirs = inference_detector(init_detector(*map(str, rtmdet), device='cpu'), image)
    theirs = theirs.pred_instances
    assert len({*theirs.labels.tolist()}) > 1  # the filter has something to do
    people = theirs[theirs.labels == 0]
    assert len(people) > 1
    boxes = people.bboxes.clamp(torch.zeros(4), torch.tensor([160.0, 120, 160, 120]))
    large = (boxes[:, 2:] - boxes[:, :2] >= 2).all(dim=1)
    assert np.array_equal(found[:, :4], boxes[large].numpy())
    assert np.array_equal(found[:, 4], people.scores[large].numpy())
    fewer = MMDetDetector(*rtmdet, score_thr=0, nms_thr=0.2, max_people=3)(image)
    assert len(fewer) == 3 and np.array_equal(fewer[0], found[0])
