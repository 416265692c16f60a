"""Keypoints of the people in an image."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import Compose, pseudo_collate
from mmengine.registry import DefaultScope
from mmengine.structures import BaseDataElement
from torch import nn

from sapiens2_mm.datasets.io.image import read_image, to_bgr_uint8

from .batches import split_batches

# Steps that need annotations or change the picture at random.
_TRAINING_STEP = re.compile('Random|HalfBody|GenerateTarget|Distortion|Dropout|Album')


def inference_pose(
    model: nn.Module,
    image: str | Path | np.ndarray,
    bboxes: np.ndarray | Sequence[Sequence[float]],
    bbox_format: str = 'xyxy',
    batch_size: int = 8,
) -> list[BaseDataElement]:
    """Predict the keypoints of every box of one image.

    Args:
        model: a top-down estimator of ``init_model``; boxes go through the pipeline of
            its config's ``test_dataloader``.
        image: path, or array (H, W), (H, W, 1), (H, W, 3) BGR or (H, W, 4) BGRA of 8
            or 16 bits. Alpha is dropped, not blended.
        bboxes: (N, 4) in pixels of the image, one per person; N may be 0.
        bbox_format: ``'xyxy'`` (left, top, right, bottom) or ``'xywh'`` (left, top,
            width, height).
        batch_size: persons per forward pass.

    Returns:
        One mmpose ``PoseDataSample`` per box, in order; none if there is no box. In
        its ``pred_instances``, arrays of float32: ``keypoints`` (1, K, 2) in pixels
        of the image, ``keypoint_scores`` (1, K), and ``bboxes`` (1, 4) xyxy.

    Raises:
        ValueError: if the image cannot be read, a box is not finite, empty or given
            in normalized numbers, or the pipeline has a step for training.
    """
    if isinstance(image, np.ndarray):
        path, pixels = None, to_bgr_uint8(image)
    else:
        path, pixels = str(image), read_image(image)
    boxes = _to_xyxy(bboxes, bbox_format)
    pipeline = _test_pipeline(model.cfg)
    results: list[BaseDataElement] = []
    for part in split_batches(boxes, batch_size):
        batch = [
            pipeline(
                dict(
                    model.dataset_meta,
                    img=pixels,
                    img_path=path,
                    bbox=box[None],
                    bbox_score=np.ones(1, dtype=np.float32),
                )
            )
            for box in part
        ]
        with torch.no_grad():
            results += model.test_step(pseudo_collate(batch))
    return results


def _to_xyxy(
    bboxes: np.ndarray | Sequence[Sequence[float]], bbox_format: str
) -> np.ndarray:
    """(N, 4) float32 xyxy; raises ``ValueError`` for a box that cannot be meant."""
    if bbox_format not in ('xyxy', 'xywh'):
        raise ValueError(f'bbox_format must be "xyxy" or "xywh", got {bbox_format!r}')
    try:
        boxes = np.array(bboxes, np.float32).reshape(len(bboxes), 4)
    except (TypeError, ValueError) as err:
        raise ValueError(f'inference_pose: bboxes must be (N, 4): {err}') from err
    for index, box in enumerate(boxes):
        extent = box[2:] - box[:2] if bbox_format == 'xyxy' else box[2:]
        if not np.isfinite(box).all():
            fault = 'is not finite'
        elif (box <= 1).all():
            fault = 'looks normalized to 0..1; multiply it by the width and height'
        elif (extent <= 0).any():
            fault = 'has no positive width and height; check bbox_format'
        else:
            continue
        raise ValueError(
            f'inference_pose: box {index} = {box.tolist()} ({bbox_format}) {fault}'
        )
    if bbox_format == 'xywh':
        boxes[:, 2:] += boxes[:, :2]
    return boxes


def _test_pipeline(cfg: Config) -> Compose:
    dataset = (cfg.get('test_dataloader') or {}).get('dataset', {})
    while 'dataset' in dataset:  # a wrapper such as RepeatDataset
        dataset = dataset['dataset']
    if 'pipeline' not in dataset:
        raise ValueError(
            'inference_pose: the config has no test_dataloader.dataset.pipeline, which '
            'crops and packs a person'
        )
    steps = dataset['pipeline']
    for step in steps:
        name = step['type'] if isinstance(step['type'], str) else step['type'].__name__
        if _TRAINING_STEP.search(name):
            raise ValueError(
                f'inference_pose: the step {name} of test_dataloader.dataset.pipeline '
                'belongs to training, it needs ground truth or is random; remove it'
            )
    with DefaultScope.overwrite_default_scope(cfg.get('default_scope')):
        return Compose(steps)
