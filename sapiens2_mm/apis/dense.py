"""Inference with the models of dense regression."""

from collections.abc import Sequence

import numpy as np
import torch
from mmengine.dataset import Compose, pseudo_collate
from torch import nn

from sapiens2_mm.registry import TRANSFORMS
from sapiens2_mm.structures import DenseDataSample

from .batches import ImageLike, image_records, split_batches


def inference_dense(
    model: nn.Module,
    images: ImageLike | Sequence[ImageLike],
    masks: Sequence[np.ndarray] | None = None,
    batch_size: int = 1,
) -> list[DenseDataSample]:
    """Predict maps of images.

    Runs the test pipeline of ``model.cfg`` without its steps for annotations.

    Args:
        model: from ``init_model``.
        images: one or several, of any sizes: paths, or arrays (H, W), (H, W, 3) BGR or
            (H, W, 4) BGRA of 8 or 16 bits.
        masks: one (H, W) bool array per image; predictions are 0 outside.
        batch_size: images at once.

    Returns:
        One data sample per image, on the CPU, with ``pred_*`` maps of the image's own
        size, float32.

    Raises:
        TypeError: for anything but paths and arrays.
        ValueError: for an image that cannot be read, masks that do not fit, a
            ``batch_size`` under 1, and a test pipeline with steps of training.
    """
    records = image_records(images)
    masks = [None] * len(records) if masks is None else masks
    if len(masks) != len(records):
        raise ValueError(
            f'inference_dense: got {len(records)} images and {len(masks)} masks; give '
            'one mask per image'
        )
    pairs = list(zip(records, masks, strict=True))
    pipeline = _image_pipeline(model.cfg)
    results: list[DenseDataSample] = []
    for part in split_batches(pairs, batch_size):
        batch = [pipeline(record) for record, _ in part]
        for data, (_, mask) in zip(batch, part, strict=True):
            if mask is not None:
                _set_mask(data['data_samples'], mask)
        with torch.no_grad():
            results += [r.cpu() for r in model.test_step(pseudo_collate(batch))]
    return results


def _image_pipeline(cfg: dict) -> Compose:
    """The test pipeline without the steps that need annotations."""
    steps = []
    for step in cfg.test_dataloader.dataset.pipeline:
        kind = TRANSFORMS.get(step['type'])
        if getattr(kind, 'training_only', False):
            raise ValueError(
                f'inference_dense: {step["type"]} in the test pipeline is for training;'
                ' remove this step from test_dataloader.dataset.pipeline'
            )
        if not getattr(kind, 'needs_annotation', False):
            steps.append(TRANSFORMS.build(step))
    return Compose(steps)


def _set_mask(sample: DenseDataSample, mask: np.ndarray) -> None:
    mask = np.asarray(mask, bool)
    if mask.shape != tuple(sample.ori_shape):
        raise ValueError(
            f'inference_dense: mask of size {mask.shape} does not fit the image '
            f'{sample.img_path} of size {tuple(sample.ori_shape)}'
        )
    sample.pred_mask = torch.from_numpy(mask)[None]
