"""mmpose's COCO metrics, for models of their or of other keypoints [mmpose]."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from mmengine.logging import print_log
from mmpose.evaluation.metrics import CocoMetric, CocoWholeBodyMetric

from sapiens2_mm.datasets.checking.doubts import meta_names
from sapiens2_mm.datasets.metainfo.keypoint_conversion import (
    KeypointConversion,
    conversion_of,
)
from sapiens2_mm.registry import METRICS


class ScoredByNameMetric:
    """In front of a metric of mmpose: takes predictions to the keypoints of the file.

    For a dataset that ``predicts`` other keypoints than its file has, see
    ``Sapiens2CocoDataset``. Points of the file that the model does not have count as
    not annotated, and a warning says how many.
    """

    _conversion: KeypointConversion | None = None

    @property
    def dataset_meta(self) -> dict | None:
        return self._dataset_meta

    @dataset_meta.setter
    def dataset_meta(self, meta: dict) -> None:
        annotated = meta.get('annotated')
        if annotated is not None:
            target = annotated['dataset_name'].replace('_', '-')
            self._conversion = conversion_of(tuple(meta_names(meta)), target)
        super(ScoredByNameMetric, type(self)).dataset_meta.fset(self, annotated or meta)
        if self._conversion is not None and self._conversion.absent.any():
            self._forget_absent()

    def _forget_absent(self) -> None:
        absent = self._conversion.absent
        for annotation in self.coco.anns.values():
            for name, positions in self._conversion.target.fields.items():
                points = np.reshape(annotation[name], (-1, 3))
                points[absent[list(positions)]] = 0
                annotation[name] = points.ravel().tolist()
        print_log(
            f'{type(self).__name__}: {absent.sum()} of {len(absent)} keypoints do not '
            'follow from those of the model and are not counted; compare its figures '
            'with none of a model that has them',
            logger='current',
            level=logging.WARNING,
        )

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Keep the predictions of a batch."""
        if self._conversion is not None:
            data_samples = [self._converted(sample) for sample in data_samples]
        super().process(data_batch, data_samples)

    def _converted(self, sample: dict) -> dict:
        instances = sample['pred_instances']
        keypoints, scores = self._conversion(
            instances['keypoints'], instances['keypoint_scores']
        )
        keypoints = np.nan_to_num(keypoints)
        instances = {**instances, 'keypoints': keypoints, 'keypoint_scores': scores}
        return {**sample, 'pred_instances': instances}


@METRICS.register_module()
class Sapiens2CocoMetric(ScoredByNameMetric, CocoMetric):
    """mmpose's ``CocoMetric``, by names; see ``ScoredByNameMetric``."""


@METRICS.register_module()
class Sapiens2CocoWholeBodyMetric(ScoredByNameMetric, CocoWholeBodyMetric):
    """mmpose's ``CocoWholeBodyMetric``, by names; see ``ScoredByNameMetric``.

    The figures are those of all 133 keypoints; the log has those of body, feet, face
    and hands.
    """
