"""Load masks of body parts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from mmcv.transforms import BaseTransform

from sapiens2_mm.registry import TRANSFORMS

from ..io.label_image import read_label_image
from ..seg.label_map import UNKNOWN, label_table


@TRANSFORMS.register_module()
class LoadSegAnnotations(BaseTransform):
    """Put the class ids of a mask file into the results.

    In training it follows the loading of the image. In evaluation it stands after the
    resize, so that the labels keep their own size.

    Required keys, as ``SegDataset`` sets them: ``seg_map_path`` (None: the sample has
    no mask, nothing is loaded), ``num_classes``, ``label_map``, ``reduce_zero_label``,
    ``ignore_index``, ``seg_fields``.
    Set keys: ``gt_seg_map`` (H, W) uint8, added to ``seg_fields``.

    Args:
        palette: RGB colours, for masks that hold colours; a pixel's value is the index
            of its colour.
        backend_args: of ``mmengine.fileio.get``.

    Raises:
        ValueError: if there is no annotation to load (a pipeline for inference), the
            file cannot be read, differs in size from the image, or has a pixel value
            that is neither a class nor ignored; names the file.
    """

    def __init__(
        self,
        palette: Sequence[Sequence[int]] | None = None,
        backend_args: dict | None = None,
    ) -> None:
        self.palette = palette
        self.backend_args = backend_args

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        if 'seg_map_path' not in results:
            raise ValueError(
                'LoadSegAnnotations needs ground truth, and the sample names no mask '
                '(seg_map_path); remove LoadSegAnnotations from the pipeline that is '
                'used for inference (test_pipeline)'
            )
        path = results['seg_map_path']
        if path is None:
            return results
        values = read_label_image(path, self.palette, self.backend_args)
        if 'ori_shape' in results and values.shape != tuple(results['ori_shape'][:2]):
            raise ValueError(
                f'mask {path} has size {values.shape}, but image '
                f'{results.get("img_path")} has {tuple(results["ori_shape"][:2])}'
            )
        table = label_table(
            results['num_classes'],
            results['label_map'],
            results['reduce_zero_label'],
            results['ignore_index'],
        )
        labels = table[values]
        if labels.min() == UNKNOWN:
            raise ValueError(
                f'mask {path}: pixel values {np.unique(values[labels == UNKNOWN])} are '
                f'neither one of the {results["num_classes"]} classes nor '
                f'{results["ignore_index"]} (ignored); map them with label_map (or '
                'source) of the dataset'
            )
        results['gt_seg_map'] = labels.astype(np.uint8)
        results['seg_fields'].append('gt_seg_map')
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}(palette={self.palette})'
