"""Body-part segmentation of images."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.dataset import Compose, pseudo_collate
from mmengine.structures import BaseDataElement
from torch import nn

ImageLike = str | Path | np.ndarray


def inference_seg(
    model: nn.Module,
    images: ImageLike | Sequence[ImageLike],
    batch_size: int = 1,
) -> list[BaseDataElement]:
    """Label the body parts of images.

    Args:
        model: of ``init_model``; images go through its config's ``test_pipeline``.
        images: one or several, of any sizes: paths, or arrays (H, W), (H, W, 3) BGR or
            (H, W, 4) BGRA of 8 or 16 bits.
        batch_size: images per forward pass.

    Returns:
        One mmseg ``SegDataSample`` per image, on the CPU, with ``pred_sem_seg.data``
        (1, H, W) int64 class ids, H and W those of the image.

    Raises:
        TypeError: for anything but paths and arrays.
        ValueError: if an image cannot be read (names it), or the pipeline has a step
            that needs ground truth (names it).
    """
    one = isinstance(images, ImageLike) or not isinstance(images, Iterable)
    items = [images] if one else list(images)
    if batch_size < 1:
        raise ValueError(
            f'inference_seg: batch_size must be at least 1, got {batch_size}'
        )
    if 'test_pipeline' not in model.cfg:
        raise ValueError(
            'inference_seg: the config has no test_pipeline; add one that loads, '
            'resizes and packs an image without labels'
        )
    pipeline = Compose(model.cfg.test_pipeline)
    results: list[BaseDataElement] = []
    for start in range(0, len(items), batch_size):
        batch = [pipeline(_sample(i)) for i in items[start : start + batch_size]]
        with torch.no_grad():
            results += [r.cpu() for r in model.test_step(pseudo_collate(batch))]
    return results


def _sample(image: ImageLike) -> dict[str, Any]:
    if isinstance(image, np.ndarray):
        return dict(img=image)
    if isinstance(image, str | Path):
        return dict(img_path=str(image))
    raise TypeError(
        f'inference_seg: expected paths or arrays, got {type(image).__name__}'
    )
