"""Intersection over union and its relatives for label maps."""

import logging
import os.path as osp
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mmengine
import numpy as np
import torch
from mmengine.evaluator import BaseMetric
from mmengine.logging import MMLogger, print_log
from prettytable import PrettyTable

from sapiens2_mm.datasets.io.label_image import write_label_image
from sapiens2_mm.registry import METRICS

from .confusion import (
    absent_classes,
    confusion_matrix,
    confusion_scores,
    merge_classes,
)

_METRICS = ('mIoU', 'mDice', 'mFscore')


@METRICS.register_module()
class Sapiens2IoUMetric(BaseMetric):
    """mIoU, mAcc, aAcc and a table per class, from one exact confusion matrix.

    Two rules for a class without a score, which occurs neither in the ground truth
    nor in a prediction: by default it is left out of the means, as mmseg does; with
    ``nan_to_num=0`` it counts as 0, as in the released evaluation. The released
    configs use the second, so their numbers are lower where classes are missing.

    Results are percentages, rounded to two decimals. Means of all classes and the
    table go to the log; ``report_file`` keeps them together with the confusion matrix.
    Counts are integers per sample, so several processes give the same result as one.

    Args:
        iou_metrics: any of ``'mIoU'``, ``'mDice'``, ``'mFscore'``.
        ignore_index: label of pixels that are not counted.
        nan_to_num: what a class without a score counts as; None leaves it out.
        beta: weight of recall in Fscore.
        merged_classes: name -> classes that count as this one, in annotations as in
            predictions, where the annotations tell fewer parts apart than the model:
            ``dict(Left_Arm=('Left_Upper_Arm', 'Left_Lower_Arm', 'Left_Hand'))``.
        report_file: JSON file for summary, scores per class and confusion matrix
            (rows are true classes).
        output_dir: folder for predicted label maps, one palette PNG per image, named
            after it; pixel values are class ids (plus 1 with ``reduce_zero_label``).
        keep_results: mmseg's test tool says True; the label maps are kept in any case.
        format_only: only write label maps; needs ``output_dir`` and no labels.
        collect_device: ``'cpu'`` or ``'gpu'``.
        prefix: put before the names of the results.

    Raises:
        ValueError: for unknown metrics or merged classes; ``format_only`` without
            ``output_dir``; a sample without labels, of another size than its
            prediction, or with a label out of range; two images whose label maps would
            have one name.

    Source: official repository, first public release, segmentation evaluator.
    """

    def __init__(
        self,
        iou_metrics: str | Sequence[str] = ('mIoU',),
        ignore_index: int = 255,
        nan_to_num: float | None = None,
        beta: float = 1.0,
        merged_classes: Mapping[str, Sequence[str]] | None = None,
        report_file: str | None = None,
        output_dir: str | None = None,
        format_only: bool = False,
        keep_results: bool = True,
        collect_device: str = 'cpu',
        prefix: str | None = None,
    ) -> None:
        super().__init__(collect_device=collect_device, prefix=prefix)
        if isinstance(iou_metrics, str):
            iou_metrics = (iou_metrics,)
        if wrong := sorted(set(iou_metrics) - set(_METRICS)):
            raise ValueError(f'iou_metrics must be of {_METRICS}, got {wrong}')
        if format_only and output_dir is None:
            raise ValueError('format_only writes label maps and needs output_dir')
        self.iou_metrics = tuple(iou_metrics)
        self.ignore_index = ignore_index
        self.nan_to_num = nan_to_num
        self.beta = beta
        self.merged_classes = merged_classes or {}
        self.report_file = report_file
        self.output_dir = output_dir
        self.format_only = format_only
        self._written: dict[str, str] = {}

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Count (and write) the predictions of one batch."""
        num_classes = len(self.dataset_meta['classes'])
        for sample in data_samples:
            pred = sample['pred_sem_seg']['data']
            pred = pred[0] if pred.ndim == 3 else pred
            if self.output_dir is not None:
                self._write(pred, sample)
            if self.format_only:
                self.results.append(None)
                continue
            name = sample.get('img_path')
            if 'gt_sem_seg' not in sample:
                raise ValueError(
                    f'labels are missing for {name}; give the dataset its masks '
                    '(data_prefix.seg_map_path), or set format_only and output_dir'
                )
            label = sample['gt_sem_seg']['data']
            label = label[0] if label.ndim == 3 else label
            try:
                counts = confusion_matrix(pred, label, num_classes, self.ignore_index)
            except ValueError as err:
                raise ValueError(f'{name}: {err}') from err
            self.results.append(counts.cpu().numpy())

    def compute_metrics(self, results: list[np.ndarray]) -> dict[str, float]:
        """Percentages of the whole data set, rounded to two decimals."""
        logger = MMLogger.get_current_instance()
        if self.format_only:
            print_log(f'label maps are in {self.output_dir}', logger)
            return {}
        confusion, classes = merge_classes(
            np.sum(results, axis=0), self.dataset_meta['classes'], self.merged_classes
        )
        summary, per_class = confusion_scores(
            confusion, self.iou_metrics, self.nan_to_num, self.beta
        )
        summary = {k: round(100 * v, 2) for k, v in summary.items()}
        per_class = {k: np.round(100 * v, 2) for k, v in per_class.items()}
        table = PrettyTable()
        table.add_column('Class', classes)
        for key, values in per_class.items():
            table.add_column(key, values.tolist())
        print_log(f'per class results:\n{table.get_string()}', logger)
        if absent := [classes[index] for index in absent_classes(confusion)]:
            rule = (
                'left out of the means unless predicted'
                if self.nan_to_num is None
                else f'counted as {self.nan_to_num}'
            )
            print_log(
                f'classes that never occur in the ground truth ({rule}): {absent}; '
                f'label {self.ignore_index} is ignored',
                logger,
                level=logging.WARNING,
            )
        if self.report_file is not None:
            self._report(summary, per_class, confusion, classes)
        return summary

    def _report(
        self,
        summary: dict,
        per_class: dict[str, np.ndarray],
        confusion: np.ndarray,
        classes: Sequence[str],
    ) -> None:
        report = dict(
            summary={k: _or_none(v) for k, v in summary.items()},
            classes={
                name: {k: _or_none(v[index]) for k, v in per_class.items()}
                for index, name in enumerate(classes)
            },
            confusion=confusion.tolist(),
        )
        mmengine.mkdir_or_exist(osp.dirname(self.report_file) or '.')
        mmengine.dump(report, self.report_file, indent=1)

    def _write(self, pred: torch.Tensor, sample: dict) -> None:
        path = sample['img_path']
        stem = Path(path).stem
        other = self._written.setdefault(stem, path)
        if other != path:
            raise ValueError(
                f'label maps of {other} and {path} would both be {stem}.png in '
                f'{self.output_dir}; rename one, or write them in two runs'
            )
        shift = int(bool(sample.get('reduce_zero_label', False)))
        palette = self.dataset_meta.get('palette')
        if palette:
            palette = [(0, 0, 0)] * shift + list(palette)
        write_label_image(
            Path(self.output_dir) / f'{stem}.png', pred.cpu().numpy() + shift, palette
        )


def _or_none(value: float) -> float | None:
    """A plain number, or None for NaN, which JSON does not know."""
    return None if np.isnan(value) else float(value)
