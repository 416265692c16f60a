"""Views of a person averaged: against separate passes, and by exact heatmaps."""

import numpy as np
import pytest
import torch
from mmengine.dataset import pseudo_collate

pytest.importorskip('mmpose')

from mmengine.config import Config
from tiny_pose_head import CODEC, FLIP_INDICES, INPUT, K, estimator_cfg, head_cfg

from sapiens2_mm.registry import MODELS, TRANSFORMS

CONFIG = 'configs/pose/sapiens2-tiny_udp-heatmap_1xb8_humans308-256x192.py'
WIDTH = 70


@pytest.fixture(scope='module')
def model():
    torch.manual_seed(0)
    module = MODELS.build(
        estimator_cfg(test_cfg=dict(flip_test=True, output_heatmaps=True))
    )
    module.init_weights()
    tta = dict(type='sapiens2_mm.Sapiens2PoseTTAModel', module=module)
    return MODELS.build(tta).eval()


@pytest.fixture
def batch(repo_dir):
    """Views of two persons by the pipeline of the configs, at the size of the model."""

    def make(paddings=(1.25, 1.125, 1.375), flips=(0.0, 1.0)):
        pipeline = Config.fromfile(repo_dir / CONFIG).tta_pipeline
        crops, mirrors, (affine,), _ = pipeline[1].transforms
        affine.input_size = INPUT
        crops[:] = [dict(crops[0], padding=padding) for padding in paddings]
        mirrors[:] = [dict(mirrors[0], prob=prob) for prob in flips]
        step = TRANSFORMS.build(pipeline[1])
        rng = np.random.default_rng(0)
        image = rng.integers(0, 256, (90, WIDTH, 3), np.uint8)
        persons = []
        for box in ((8, 12, 40, 60), (20, 5, 65, 80)):
            results = dict(
                img=image, img_shape=(90, WIDTH), ori_shape=(90, WIDTH),
                bbox=np.float32([box]), bbox_score=np.ones(1, np.float32),
                flip_indices=FLIP_INDICES,
            )  # fmt: skip
            persons.append(step(results))
        return pseudo_collate(persons)

    return make


def maps_of(samples):
    return torch.stack([sample.pred_fields.heatmaps for sample in samples])


@torch.no_grad()
def test_mirrored_views_equal_flip_test(model, batch):
    """The mean of two separate passes, and mmpose's own way."""
    data = batch(paddings=(1.25,))
    views = [{key: value[i] for key, value in data.items()} for i in range(2)]
    plain, mirrored = (
        model.module(**model.module.data_preprocessor(view), mode='tensor')
        for view in views
    )
    expected = (plain + mirrored.flip(-1)[:, FLIP_INDICES]) / 2
    flip_test = model.module.test_step(views[0])
    assert (mirrored.flip(-1)[:, FLIP_INDICES] - plain).abs().max() > 1e-2
    merged = model.test_step(data)
    torch.testing.assert_close(maps_of(merged), expected, atol=2e-5, rtol=1e-4)
    # The crop of a mirrored picture and the mirrored crop differ by rounding.
    torch.testing.assert_close(maps_of(merged), maps_of(flip_test), atol=0.05, rtol=0)


@torch.no_grad()
def test_all_views_go_through_the_model_together(model, batch, monkeypatch):
    batches = []
    forward = model.module.backbone.forward
    monkeypatch.setattr(
        model.module.backbone,
        'forward',
        lambda images: batches.append(len(images)) or forward(images),
    )
    results = model.test_step(batch())
    assert batches == [2 * 3 * 2]
    assert [len(result.pred_instances.keypoints) for result in results] == [1, 1]
    assert np.isfinite(results[0].pred_instances.keypoints).all()


def places(meta):
    """(5, h, w): x, y, 10 * x, 100 + y and 7 in the upright picture, at each pixel."""
    width, height = CODEC['heatmap_size']
    corner = meta['input_center'] - meta['input_scale'] / 2
    x = corner[0] + np.linspace(0, 1, width) * meta['input_scale'][0]
    y = corner[1] + np.linspace(0, 1, height) * meta['input_scale'][1]
    x, y = np.meshgrid(WIDTH - 1 - x if meta['flip'] else x, y)
    return np.stack((x, y, 10 * x, 100 + y, np.full_like(x, 7)))


@torch.no_grad()
def test_views_are_aligned(model, batch, monkeypatch):
    """Maps that tell their place: each pixel of the mean is a mean of one place."""
    data = batch()
    metas = [sample.metainfo for view in data['data_samples'] for sample in view]
    seen = [places(meta)[FLIP_INDICES if meta['flip'] else ...] for meta in metas]
    maps = torch.tensor(np.stack(seen), dtype=torch.float32)
    monkeypatch.setattr(model.module, '_forward', lambda inputs: maps)
    for result in model.test_step(data):
        expected = torch.from_numpy(places(result.metainfo)).float()
        torch.testing.assert_close(result.pred_fields.heatmaps, expected)


@torch.no_grad()
def test_a_view_counts_only_where_it_sees(model, batch, monkeypatch):
    """Constant maps: the tight crop has no say at the border of the wide one."""
    data = batch(paddings=(1.5, 1.0), flips=(0.0,))
    values = torch.tensor([1.0, 1.0, 3.0, 3.0])  # two views of two persons
    maps = values[:, None, None, None].expand(4, K, *CODEC['heatmap_size'][::-1])
    monkeypatch.setattr(model.module, '_forward', lambda inputs: maps)
    for merged in maps_of(model.test_step(data)):
        assert merged[:, 0].eq(1).all() and merged[:, :, -1].eq(1).all()
        torch.testing.assert_close(merged[:, 8, 6], torch.full((K,), 2.0))
        assert set(merged.round(decimals=5).unique().tolist()) == {1.0, 2.0}


def test_errors(model, batch):
    with pytest.raises(ValueError, match=r'first view .*flip=\[True, False\]'):
        model.test_step(batch(paddings=(1.25,), flips=(1.0, 0.0)))
    data = batch(paddings=(1.25,), flips=(0.0, 1.0))
    for sample in data['data_samples'][1]:
        sample.set_metainfo(dict(flip_direction='vertical'))
    with pytest.raises(ValueError, match=r"directions \{'vertical'\}; correct Random"):
        model.test_step(data)
    data['inputs'][1] = [image[:, :, :32] for image in data['inputs'][1]]
    for sample in data['data_samples'][1]:
        sample.set_metainfo(dict(input_size=(32, 64)))
    with pytest.raises(ValueError, match=r'of \(48.0, 64.0\), not of \(32, 64\)'):
        model.test_step(data)
    codec = dict(CODEC, type='mmpose.MSRAHeatmap', sigma=2)
    module = estimator_cfg(head=head_cfg(decoder=codec, target='heatmaps'))
    with pytest.raises(ValueError, match='heatmaps of a Sapiens2PoseHead'):
        MODELS.build(dict(type='sapiens2_mm.Sapiens2PoseTTAModel', module=module))
