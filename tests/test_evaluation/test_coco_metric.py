import numpy as np
import pytest
from mmengine.config import Config
from mmengine.registry import init_default_scope
from public_layouts import write_layout

from sapiens2_mm.datasets.metainfo.humans308 import KEYPOINT_NAMES
from sapiens2_mm.datasets.metainfo.keypoint_conversion import conversion_of
from sapiens2_mm.registry import DATASETS, METRICS

pytest.importorskip('mmpose')


@pytest.mark.parametrize('name', ['coco', 'coco_wholebody'])
@pytest.mark.parametrize('shift, ap', [(0, 1), (30, 0)])
def test_308_keypoints_are_scored_by_their_names(
    name, shift, ap, repo_dir, tmp_path, log
):
    """A model whose points lie where the file has those of the same names."""
    write_layout(name, tmp_path)
    cfg = Config.fromfile(repo_dir / f'configs/_base_/datasets/public/{name}.py')
    init_default_scope('mmpose')
    dataset = DATASETS.build(
        {
            **cfg.test_dataloader.dataset,
            'data_root': str(tmp_path),
            'predicts': dict(type='sapiens2_mm.Humans308Dataset'),
            'pipeline': [],
        }
    )
    metric = METRICS.build(cfg.test_evaluator)
    metric.dataset_meta = dataset.metainfo
    target = name.replace('_', '-')
    conversion = conversion_of(KEYPOINT_NAMES, target)
    for sample in dataset:
        assert sample['keypoints'].shape == (1, 308, 2)
        assert len(sample['flip_indices']) == 308
        (truth,) = metric.coco.loadAnns(metric.coco.getAnnIds(sample['img_id']))
        fields = conversion.target.fields
        points = np.concatenate([truth[f] for f in fields]).reshape(-1, 3)[:, :2]
        predicted = np.full((1, 308, 2), 1e4, np.float32)
        for point, place in zip(conversion.points, points, strict=True):
            for source in point.sources:
                predicted[0, KEYPOINT_NAMES.index(source)] = place + shift
        metric.process(
            None,
            [
                dict(
                    **sample,
                    pred_instances=dict(
                        keypoints=predicted, keypoint_scores=np.ones((1, 308))
                    ),
                    gt_instances=dict(bbox_scores=np.ones(1)),
                )
            ],
        )
    assert metric.evaluate(2)[f'{target}/AP'] == ap
    counted = '16 of 133 keypoints do not follow from those of the model' in log.text
    assert counted == (name == 'coco_wholebody')
