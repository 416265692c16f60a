"""Body-part segmentation of images."""

from collections.abc import Sequence

import torch
from mmengine.dataset import Compose, pseudo_collate
from mmengine.structures import BaseDataElement
from torch import nn

from .batches import ImageLike, image_records, split_batches


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
    if 'test_pipeline' not in model.cfg:
        raise ValueError(
            'inference_seg: the config has no test_pipeline; add one that loads, '
            'resizes and packs an image without labels'
        )
    pipeline = Compose(model.cfg.test_pipeline)
    results: list[BaseDataElement] = []
    for records in split_batches(image_records(images), batch_size):
        batch = pseudo_collate([pipeline(record) for record in records])
        with torch.no_grad():
            results += [result.cpu() for result in model.test_step(batch)]
    return results
