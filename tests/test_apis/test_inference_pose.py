import copy
import re

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config

from sapiens2_mm.apis import Inferencer, init_model

pytest.importorskip('mmpose')

from sapiens2_mm.models.codecs.udp_heatmap import encode_udp_heatmaps

BOXES = np.float32([[10, 5, 60, 80], [30, 10, 90, 95], [-5, 20, 40, 120]])


@pytest.fixture(scope='module')
def model(repo_dir):
    cfg = Config.fromfile(
        repo_dir / 'configs/pose/'
        'sapiens2-tiny_udp-heatmap_1xb8_synthetic-humans-256x192.py'
    )
    cfg.model.backbone.arch = dict(
        embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64
    )
    cfg.model.head.update(
        in_channels=32, deconv_out_channels=(16, 16), conv_out_channels=(16,)
    )
    torch.manual_seed(0)
    return init_model(cfg)


@pytest.fixture(scope='module')
def image():
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (12, 10, 3), dtype=np.uint8)
    return cv2.resize(coarse, (100, 120), interpolation=cv2.INTER_CUBIC)


def predict(model, image, boxes, box_format='xyxy', batch_size=8):
    (result,) = Inferencer(model)(
        image, boxes=boxes, box_format=box_format, batch_size=batch_size
    )
    return result


def assert_mostly_close(found, expected):
    """Maps of random weights have equal peaks far apart: some points may jump."""
    assert (np.abs(found - expected) < 0.1).mean() > 0.95


def test_one_person_per_box(model, image):
    result = predict(model, image, BOXES)
    assert result.keypoints.shape == (3, 308, 2)
    assert result.keypoint_scores.shape == (3, 308)
    assert result.keypoints.dtype == result.keypoint_scores.dtype == np.float32
    assert np.isfinite(result.keypoints).all()
    assert np.array_equal(result.boxes, BOXES)
    assert result.boxes_from == 'given' and result.skipped_boxes == ()
    assert np.array_equal(result.data_sample.pred_instances.bboxes, BOXES)


def test_keypoints_are_in_image_pixels(model, image):
    """Moving picture and box together moves the keypoints by as much."""
    moved = np.zeros((150, 140, 3), np.uint8)
    moved[20:140, 30:130] = image
    padded = np.zeros_like(moved)
    padded[:120, :100] = image
    box = BOXES[:1]
    there = predict(model, padded, box).keypoints
    here = predict(model, moved, box + [30, 20, 30, 20]).keypoints
    assert_mostly_close(here, there + [30, 20])


def test_crop_and_decode_are_inverse(model, image, monkeypatch):
    """A head that finds a point of the crop exactly: where is it in the image?"""
    crop = torch.tensor([[60.0, 100.0], [130.5, 170.25]])  # of 192x256
    heatmaps, _ = encode_udp_heatmaps(
        crop.repeat(1, 154, 1), torch.ones(1, 308), (192, 256), (48, 64), sigma=2
    )
    monkeypatch.setitem(model.test_cfg, 'flip_test', False)
    monkeypatch.setattr(model.head, 'forward', lambda feats: heatmaps)
    result = predict(model, image, BOXES[:1])
    # Box 50x75, padded by 1.25, then widened to 3:4: 70.3x93.75 around (35, 42.5).
    size = np.array([93.75 * 0.75, 93.75])
    expected = (crop.numpy() / (191, 255) - 0.5) * size + (35, 42.5)
    np.testing.assert_allclose(result.keypoints[0, :2], expected, atol=1e-3)


@pytest.mark.parametrize('batch_size', [1, 2])
def test_batch_size_changes_nothing(model, image, batch_size):
    expected = predict(model, image, BOXES).keypoints
    found = predict(model, image, BOXES, batch_size=batch_size).keypoints
    assert_mostly_close(found, expected)


def test_box_formats(model, image):
    xywh = np.concatenate((BOXES[:, :2], BOXES[:, 2:] - BOXES[:, :2]), axis=1)
    expected = predict(model, image, BOXES).keypoints
    found = predict(model, image, xywh.tolist(), box_format='xywh')
    assert np.array_equal(found.keypoints, expected)
    assert xywh[0].tolist() == [10, 5, 50, 75]  # the caller's array is untouched


def test_scores_of_boxes(model, image):
    assert predict(model, image, BOXES).box_scores.tolist() == [1, 1, 1]
    rows = np.insert(BOXES, 4, [0.75, 0.25, 0.5], axis=1)
    rows[1, 2] = 0  # left of its left side
    result = predict(model, image, rows)
    assert np.array_equal(result.boxes, BOXES[[0, 2]])
    assert result.box_scores.tolist() == [0.75, 0.5]
    assert result.box_scores.dtype == result.boxes.dtype == np.float32
    instances = result.data_sample.pred_instances
    assert instances.bbox_scores.tolist() == [0.75, 0.5]


def test_tiny_and_huge_boxes(model, image):
    boxes = [[50, 50, 50.001, 50.001], [-1e6, -1e6, 1e6, 1e6], *BOXES]
    result = predict(model, image, boxes)
    assert np.array_equal(result.boxes, np.float32(boxes))
    assert np.isfinite(result.keypoints).all()
    assert_mostly_close(result.keypoints[2:], predict(model, image, BOXES).keypoints)


@pytest.mark.parametrize('empty', [[], np.zeros((0, 4)), np.zeros((0, 5))])
def test_no_box_is_no_person(model, image, empty):
    result = predict(model, image, empty)
    assert result.keypoints.shape == (0, 308, 2) and result.boxes.shape == (0, 4)
    drawn = Inferencer(model).draw(result)
    assert np.array_equal(drawn, image[..., ::-1])


@pytest.mark.parametrize(
    'box, box_format, message',
    [
        ([50, 10, 20, 90], 'xyxy', r'box 1 = .* no positive width'),
        ([50, 10, 20, -1], 'xywh', r'box 1 = .*\(xywh\) has no positive width'),
        ([0.1, 0.1, 0.6, 0.9], 'xyxy', 'looks normalized'),
        ([0.1, 0.1, 0.6, 0.9], 'xywh', 'looks normalized'),
        ([np.nan, 10, 20, 90], 'xyxy', 'is not finite'),
        ([10, 10, np.inf, 90], 'xywh', 'is not finite'),
        ([200, 10, 220, 90], 'xyxy', r'lies outside the picture .* \(120, 100\)'),
    ],
)
def test_box_that_cannot_be_meant_is_left_out(
    model, image, box, box_format, message, log
):
    good = [10, 10, 50, 90]
    result = predict(model, image, [good, box], box_format)
    (named,) = result.skipped_boxes
    assert re.search(message, named) and named in log.text
    assert np.array_equal(
        result.keypoints, predict(model, image, [good], box_format).keypoints
    )


def test_other_errors(model, image, tmp_path):
    with pytest.raises(ValueError, match=r'must be \(N, 4\) .* last, got array'):
        predict(model, image, BOXES[0])
    with pytest.raises(ValueError, match='box_format must be "xyxy" or "xywh"'):
        predict(model, image, BOXES, 'cxcywh')
    with pytest.raises(ValueError, match='batch_size must be at least 1, got 0'):
        predict(model, image, BOXES, batch_size=0)
    with pytest.raises(ValueError, match='uint8 or uint16, got float64'):
        predict(model, image / 255, BOXES)
    with pytest.raises(FileNotFoundError, match='nothing'):
        predict(model, tmp_path / 'nothing.png', BOXES)
    (tmp_path / 'text.jpg').write_text('no image')
    with pytest.raises(ValueError, match=r'text\.jpg'):
        predict(model, tmp_path / 'text.jpg', BOXES)


def test_image_kinds(model, image, tmp_path):
    expected = predict(model, image, BOXES).keypoints
    folder = tmp_path / '\u0442\u0435\u0441\u0442 \u00e9'
    folder.mkdir()
    path = folder / '\u4eba 1.png'
    path.write_bytes(cv2.imencode('.png', image)[1].tobytes())
    alpha = np.dstack((image, np.full(image.shape[:2], 7, np.uint8)))
    deep = image.astype(np.uint16) * 257
    for same in (path, str(path), alpha, deep):
        assert np.array_equal(predict(model, same, BOXES).keypoints, expected)
    gray = image[..., 1]
    expected = predict(model, np.dstack([gray] * 3), BOXES).keypoints
    for same in (gray, gray[..., None]):
        assert np.array_equal(predict(model, same, BOXES).keypoints, expected)


@pytest.mark.parametrize(
    'step',
    [
        dict(type='mmpose.GenerateTarget', encoder=None),
        dict(type='sapiens2_mm.Sapiens2RandomHalfBody'),
        dict(type='mmpose.RandomFlip'),
        dict(type='RandomApply', transforms=[]),
    ],
)
def test_training_step_in_the_test_pipeline(model, image, monkeypatch, step):
    cfg = Config(model.cfg.to_dict())
    cfg.test_dataloader.dataset.pipeline.insert(2, step)
    monkeypatch.setattr(model, 'cfg', cfg)
    with pytest.raises(ValueError, match=f'the step {step["type"]} of .* remove it'):
        predict(model, image, BOXES)


def test_training_pipeline_as_test_pipeline(model, image, monkeypatch):
    cfg = Config(model.cfg.to_dict())
    cfg.test_dataloader.dataset.pipeline = cfg.train_dataloader.dataset.pipeline
    monkeypatch.setattr(model, 'cfg', cfg)
    with pytest.raises(ValueError, match=r'mmpose\.RandomFlip .* remove it'):
        predict(model, image, BOXES)


def test_pipeline_of_a_wrapped_dataset(model, image, monkeypatch):
    expected = predict(model, image, BOXES)
    cfg = copy.deepcopy(model.cfg)
    cfg.test_dataloader.dataset = dict(
        type='RepeatDataset', times=2, dataset=cfg.test_dataloader.dataset
    )
    monkeypatch.setattr(model, 'cfg', cfg)
    np.testing.assert_array_equal(
        predict(model, image, BOXES).keypoints, expected.keypoints
    )


@pytest.mark.parametrize('boxes', [[['a', 'b', 'c', 'd']], [[1, 2, 3, 4], [1]], [None]])
def test_boxes_that_are_no_numbers(model, image, boxes):
    with pytest.raises(ValueError, match=r'boxes must be \(N, 4\) numbers'):
        predict(model, image, boxes)


def test_config_without_test_data(model, image, monkeypatch):
    monkeypatch.setattr(model, 'cfg', Config(dict(default_scope='mmpose')))
    with pytest.raises(ValueError, match='has no test_dataloader'):
        predict(model, image, BOXES)


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_gives_float32_arrays(model, image, dtype):
    with torch.autocast('cpu', dtype=dtype):
        autocast = predict(model, image, BOXES)
    half = copy.deepcopy(model).to(dtype)
    for result in (autocast, predict(half, image, BOXES)):
        assert result.keypoints.dtype == result.keypoint_scores.dtype == np.float32
        assert np.isfinite(result.keypoints).all()
