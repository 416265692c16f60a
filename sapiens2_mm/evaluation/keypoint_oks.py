"""OKS average precision of keypoints, as a whole and by body part."""

import json
import logging
from collections.abc import Hashable, Sequence
from typing import Any

import mmengine.fileio
import numpy as np
import torch
from mmengine.evaluator import BaseMetric
from mmengine.logging import MessageHub, print_log

from sapiens2_mm.datasets.pose.coco_keypoints import (
    CocoKeypoints,
    describe_faults,
    read_coco_keypoints,
)
from sapiens2_mm.registry import METRICS

from .keypoint_results import (
    PredictedPerson,
    apply_oks_nms,
    collect_persons,
)
from .oks import OksPerson, coco_oks_stats, keypoint_extent


@METRICS.register_module()
class KeypointOKSMetric(BaseMetric):
    """COCO keypoint AP and AR of any keypoint set, by pycocotools.

    Returns COCO's ten metrics over all keypoints (``coco/AP``, ``coco/AP .5``, ...,
    ``coco/AR (L)``) and ``coco/<group>_AP``, ``coco/<group>_AR`` for each group of
    the metainfo (of the 308: body, foot, left_hand, right_hand, extra_body, face). Use
    ``coco/AP`` for ``save_best``. A metric is -1 if the annotations hold no person of
    its size class or group: it is no score, and a warning says so once.

    The score of a person is the box score times the mean keypoint score above
    ``keypoint_score_thr``. Predictions of one image that resemble each other by OKS
    above ``nms_thr`` are reduced to the best one. All persons are of one category,
    whatever its id. A dataset that takes a part of its file (``indices``,
    ``sample_interval``) is scored on that part. Persons that the dataset leaves out
    (crowds, empty boxes, ...) are ignored: they are not missed, and a prediction that
    falls on one costs nothing.

    Args:
        ann_file: COCO-style annotation file; None takes the file of the dataset.
        groups: groups of the metainfo to report; None for all.
        keypoint_score_thr: keypoint scores up to this one do not count.
        nms_thr: largest OKS between two predictions; None for no suppression.
        format_only: only write predictions; needs ``outfile_prefix``.
        outfile_prefix: write ``<prefix>.keypoints.json``, a COCO result list.
        collect_device: ``'cpu'`` or ``'gpu'``.
        prefix: first part of the names, ``'coco'`` by default.

    Raises:
        ValueError: if metainfo, sigmas and predictions differ in number, a group is
            unknown, a prediction belongs to no image of the file or is not finite, or
            the file holds no person to score.

    Source: official pose evaluator; it reports the metrics over all keypoints only.
    """

    default_prefix = 'coco'

    def __init__(
        self,
        ann_file: str | None = None,
        groups: Sequence[str] | None = None,
        keypoint_score_thr: float = 0.2,
        nms_thr: float | None = 0.9,
        format_only: bool = False,
        outfile_prefix: str | None = None,
        collect_device: str = 'cpu',
        prefix: str | None = None,
    ) -> None:
        super().__init__(collect_device=collect_device, prefix=prefix)
        if format_only and outfile_prefix is None:
            raise ValueError('KeypointOKSMetric: format_only needs outfile_prefix')
        self.ann_file = ann_file
        self.groups = groups
        self.keypoint_score_thr = keypoint_score_thr
        self.nms_thr = nms_thr
        self.format_only = format_only
        self.outfile_prefix = outfile_prefix
        self._truth: CocoKeypoints | None = None
        self._image_index: dict[Hashable, int] = {}
        self._warned: set[str] = set()

    @property
    def dataset_meta(self) -> dict | None:
        return self._dataset_meta

    @dataset_meta.setter
    def dataset_meta(self, dataset_meta: dict | None) -> None:
        self._dataset_meta = dataset_meta
        if dataset_meta is None:
            return
        known = dataset_meta.get('keypoint_groups', {})
        unknown = [name for name in self.groups or () if name not in known]
        number = dataset_meta.get('num_keypoints')
        num_sigmas = len(dataset_meta.get('sigmas', ()))
        if unknown or number != num_sigmas:
            raise ValueError(
                f'metainfo {dataset_meta.get("dataset_name")} has {number} keypoints, '
                f'{num_sigmas} sigmas and the groups {sorted(known)}; the metric needs '
                f'one sigma per keypoint and the groups {unknown}'
            )
        if not self.format_only:
            self._read_truth(dataset_meta)

    def _read_truth(self, meta: dict) -> None:
        ann_file = self.ann_file or meta.get('ann_file')
        if ann_file is None:  # a dataset of mmpose leaves it there
            hub = MessageHub.get_current_instance()
            ann_file = hub.get_info(f'{meta.get("dataset_name")}_ann_file')
        if ann_file is None:
            raise ValueError(
                'KeypointOKSMetric: the dataset names no annotation file; set ann_file'
            )
        truth = read_coco_keypoints(
            ann_file,
            meta['num_keypoints'],
            meta.get('keypoints_key'),
            meta.get('category_names'),
        )
        faults = truth.fault_counts()
        if faults.total() == truth.num_annotations:
            raise ValueError(
                f'{ann_file} holds no person to score: read {len(truth.images)} images '
                f'and {truth.num_annotations} annotations, left out '
                f'{describe_faults(faults) or "none"}'
            )
        self._truth = truth
        self._image_index = {image: i for i, image in enumerate(truth.images)}

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Keep the predicted persons of each data sample.

        Args:
            data_batch: not used.
            data_samples: as dicts, with ``img_id``, ``id`` and ``pred_instances``:
                ``keypoints`` (N, K, 2) in image pixels and ``keypoint_scores`` (N, K).
        """
        for sample in data_samples:
            instances = sample['pred_instances']
            keypoints = _to_numpy(instances['keypoints'])[..., :2]
            scores = _to_numpy(instances['keypoint_scores'])
            where = f'KeypointOKSMetric: image {sample["img_id"]!r}'
            count, number = keypoints.shape[1], self.dataset_meta['num_keypoints']
            if count != number:
                raise ValueError(
                    f'{where}: {count} keypoints, the metainfo has {number}'
                )
            if not (np.isfinite(keypoints).all() and np.isfinite(scores).all()):
                raise ValueError(f'{where}: a keypoint or score is not finite')
            if self._truth is not None and sample['img_id'] not in self._image_index:
                raise ValueError(f'{where}: this id is not in {self._truth.ann_file}')
            truth = sample.get('gt_instances', {})
            boxes = instances.get('bboxes', truth.get('bboxes'))
            box_scores = instances.get('bbox_scores', truth.get('bbox_scores'))
            if box_scores is None or len(box_scores) != len(keypoints):
                box_scores = np.ones(len(keypoints))
            # One entry per sample: padding of the last batches is cut off by count.
            self.results.append(
                dict(
                    img_id=sample['img_id'],
                    id=sample.get('id'),
                    category_id=sample.get('category_id'),
                    keypoints=keypoints.astype(np.float32),
                    keypoint_scores=scores.astype(np.float32),
                    box_scores=_to_numpy(box_scores),
                    boxes=None if boxes is None else _to_numpy(boxes),
                )
            )

    def compute_metrics(self, results: list[dict]) -> dict[str, float]:
        """AP and AR from the collected persons of all processes."""
        sigmas = np.asarray(self.dataset_meta['sigmas'])
        by_image = collect_persons(results, self.keypoint_score_thr)
        if self.nms_thr is not None:
            by_image = {
                image: apply_oks_nms(persons, sigmas, self.nms_thr)
                for image, persons in by_image.items()
            }
        persons = [person for group in by_image.values() for person in group]
        if self.outfile_prefix is not None:
            self._write(persons)
        if self.format_only:
            return {}
        predictions = [
            OksPerson(
                image=self._image_index[person.image_id],
                keypoints=np.column_stack([person.keypoints, person.keypoint_scores]),
                area=float(keypoint_extent(person.keypoints)),
                score=person.score,
            )
            for person in persons
        ]
        subset = self.dataset_meta.get('person_ids')  # of a dataset with indices
        truth = [
            OksPerson(
                image=self._image_index[person.image_id],
                keypoints=person.keypoints,
                area=person.area,
                bbox=[*person.bbox[:2], *(person.bbox[2:] - person.bbox[:2])],
                ignore=person.fault is not None,
            )
            for person in self._truth.persons
            if subset is None or person.id in subset
        ]
        self._warn_missing(truth, predictions)
        metrics = coco_oks_stats(truth, predictions, sigmas)
        groups = self.dataset_meta.get('keypoint_groups', {})
        for name in groups if self.groups is None else self.groups:
            stats = coco_oks_stats(truth, predictions, sigmas, groups[name])
            metrics[f'{name}_AP'] = stats['AP']
            metrics[f'{name}_AR'] = stats['AR']
        self._warn_undefined(metrics)
        return metrics

    def _write(self, persons: list[PredictedPerson]) -> None:
        path = f'{self.outfile_prefix}.keypoints.json'
        entries = [person.to_coco() for person in persons]
        text = json.dumps(entries, ensure_ascii=False, allow_nan=False)
        mmengine.fileio.put_text(text, path)
        print_log(f'KeypointOKSMetric: wrote {path}', logger='current')

    def _warn_missing(
        self, truth: list[OksPerson], predictions: list[OksPerson]
    ) -> None:
        annotated = {person.image for person in truth if not person.ignore}
        missing = annotated - {person.image for person in predictions}
        if missing:
            print_log(
                f'KeypointOKSMetric: {len(missing)} of {len(annotated)} annotated '
                f'images of {self._truth.ann_file} have no prediction; their persons '
                'count as missed',
                logger='current',
                level=logging.WARNING,
            )

    def _warn_undefined(self, metrics: dict[str, float]) -> None:
        undefined = {name for name, value in metrics.items() if value == -1}
        if undefined - self._warned:
            self._warned |= undefined
            print_log(
                f'KeypointOKSMetric: -1 for {sorted(undefined)}: the annotations hold '
                'no such person; it is no score, do not choose a best checkpoint by it',
                logger='current',
                level=logging.WARNING,
            )


def _to_numpy(values: Any) -> np.ndarray:
    if isinstance(values, torch.Tensor):
        return values.detach().float().cpu().numpy()
    return np.asarray(values)
