"""Inference with the models of dense regression."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from mmengine.dataset import Compose
from torch import nn

from sapiens2_mm.registry import TRANSFORMS
from sapiens2_mm.structures import DenseDataSample

ImageLike = str | Path | np.ndarray


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
    if isinstance(images, str | Path | np.ndarray):
        images = [images]
    images = list(images)
    if masks is not None and len(masks) != len(images):
        raise ValueError(
            f'inference_dense: got {len(images)} images and {len(masks)} masks; give '
            'one mask per image'
        )
    if batch_size < 1:
        raise ValueError(
            f'inference_dense: batch_size must be at least 1, got {batch_size}'
        )
    pipeline = _image_pipeline(model.cfg)
    samples: list[DenseDataSample] = []
    for start in range(0, len(images), batch_size):
        batch = [pipeline(_source(image)) for image in images[start:][:batch_size]]
        if masks is not None:
            for data, mask in zip(batch, masks[start:], strict=False):
                _set_mask(data['data_samples'], mask)
        data = dict(
            inputs=[data['inputs'] for data in batch],
            data_samples=[data['data_samples'] for data in batch],
        )
        with torch.no_grad():
            samples += [sample.cpu() for sample in model.test_step(data)]
    return samples


def _source(image: ImageLike) -> dict:
    if isinstance(image, np.ndarray):
        return dict(img=image)
    if isinstance(image, str | Path):
        return dict(img_path=str(image))
    raise TypeError(
        f'inference_dense: expected paths or arrays, got {type(image).__name__}'
    )


def _image_pipeline(cfg: dict) -> Compose:
    """The test pipeline without the steps that need annotations."""
    steps = []
    for step in cfg.test_dataloader.dataset.pipeline:
        kind = TRANSFORMS.get(step['type'])
        if getattr(kind, 'training_only', False):
            raise ValueError(
                f'inference_dense: {step["type"]} in the test pipeline changes the '
                'image at random, which predictions do not follow; remove this step '
                'from test_dataloader.dataset.pipeline'
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
