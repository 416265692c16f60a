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
    Source,
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
    whatever its id. Several datasets together (``ConcatDataset``, ``CombinedDataset``)
    are each scored by the file that their samples name, so ids may occur in two files.
    A dataset that takes a part of its file (``indices``, ``sample_interval``) is scored
    on that part. Persons that the dataset leaves out
    (crowds, empty boxes, ...) are ignored: they are not missed, and a prediction that
    falls on one costs nothing.

    Args:
        ann_file: COCO-style annotation file; None takes the file that a sample names
            in ``raw_ann_info``, one of its meta keys, or that of a dataset of mmpose.
        groups: groups of the metainfo to report; None for all.
        keypoint_score_thr: keypoint scores up to this one do not count.
        nms_thr: largest OKS between two predictions; None for no suppression.
        format_only: only write predictions; needs ``outfile_prefix``.
        outfile_prefix: write ``<prefix>.keypoints.json``, a COCO result list; of the
            second annotation file ``<prefix>_1.keypoints.json``, and so on.
        collect_device: ``'cpu'`` or ``'gpu'``.
        prefix: first part of the names, ``'coco'`` by default.

    Raises:
        ValueError: if metainfo, sigmas and predictions differ in number, a group is
            unknown, a prediction belongs to no image of the file or is not finite, a
            sample names no file, or the file holds no person to score.

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
        self._truths: dict[Source, CocoKeypoints] = {}
        self._origins: dict[Hashable, str | None] = {}
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

    def _source_of(self, sample: dict) -> Source:
        """The file with the truth of a sample."""
        given = sample.get('raw_ann_info')
        given = given if isinstance(given, dict) and 'ann_file' in given else {}
        names = given.get('category_names')
        ann_file = self.ann_file or given.get('ann_file')
        if ann_file is None and 'keypoint_groups' not in self.dataset_meta:
            ann_file = self._file_of_mmpose()
        if ann_file is None:
            raise ValueError(
                f'KeypointOKSMetric: image {sample["img_id"]!r} names no annotation '
                "file; add 'raw_ann_info' to meta_keys of PackPoseInputs, or set "
                'ann_file'
            )
        origin = given.get('ann_file')
        if self._origins.setdefault(sample['img_id'], origin) != origin != ann_file:
            raise ValueError(
                f'KeypointOKSMetric: image {sample["img_id"]!r} is in {origin} and in '
                f'{self._origins[sample["img_id"]]}; leave ann_file={ann_file} out'
            )
        return Source(
            ann_file,
            given.get('keypoints_key'),
            names and tuple(names),
            given.get('part', False),
        )

    def _file_of_mmpose(self) -> str | None:
        """Where its datasets leave the name of their annotation file."""
        name = self.dataset_meta.get('dataset_name')
        return MessageHub.get_current_instance().get_info(f'{name}_ann_file')

    def _truth_of(self, source: Source) -> CocoKeypoints:
        if source in self._truths:
            return self._truths[source]
        truth = read_coco_keypoints(
            source.ann_file,
            self.dataset_meta['num_keypoints'],
            source.keypoints_key,
            source.category_names,
        )
        faults = truth.fault_counts()
        if faults.total() == truth.num_annotations:
            raise ValueError(
                f'{source.ann_file} holds no person to score: read {len(truth.images)} '
                f'images and {truth.num_annotations} annotations, left out '
                f'{describe_faults(faults) or "none"}'
            )
        self._truths[source] = truth
        return truth

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
            source = None if self.format_only else self._source_of(sample)
            if source and sample['img_id'] not in self._truth_of(source).images:
                raise ValueError(f'{where}: this id is not in {source.ann_file}')
            truth = sample.get('gt_instances', {})
            boxes = instances.get('bboxes', truth.get('bboxes'))
            box_scores = instances.get('bbox_scores', truth.get('bbox_scores'))
            if box_scores is None or len(box_scores) != len(keypoints):
                box_scores = np.ones(len(keypoints))
            # One entry per sample: padding of the last batches is cut off by count.
            self.results.append(
                dict(
                    source=source,
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
        sources = list(dict.fromkeys(result['source'] for result in results))
        if not sources:  # a detector found nobody
            sources = [Source(self.ann_file or self._file_of_mmpose())]
        images = [
            (source, image)
            for source in sources
            for image in self._truth_of(source).images
        ]
        place = {key: index for index, key in enumerate(images)}
        predictions = [
            OksPerson(
                image=place[person.source, person.image_id],
                keypoints=np.column_stack([person.keypoints, person.keypoint_scores]),
                area=float(keypoint_extent(person.keypoints)),
                score=person.score,
            )
            for person in persons
        ]
        shown = {
            (result['source'], number)
            for result in results
            for number in np.array(result['id'], dtype=object).ravel()
        }
        truth = [
            OksPerson(
                image=place[source, person.image_id],
                keypoints=person.keypoints,
                area=person.area,
                bbox=[*person.bbox[:2], *(person.bbox[2:] - person.bbox[:2])],
                ignore=person.fault is not None,
            )
            for source in sources
            for person in self._truth_of(source).persons
            if not source.part or (source, person.id) in shown
        ]
        self._warn_missing(truth, predictions, sources)
        metrics = coco_oks_stats(truth, predictions, sigmas)
        groups = self.dataset_meta.get('keypoint_groups', {})
        for name in groups if self.groups is None else self.groups:
            stats = coco_oks_stats(truth, predictions, sigmas, groups[name])
            metrics[f'{name}_AP'] = stats['AP']
            metrics[f'{name}_AR'] = stats['AR']
        self._warn_undefined(metrics)
        return metrics

    def _write(self, persons: list[PredictedPerson]) -> None:
        by_source: dict[Source | None, list[dict]] = {}
        for person in persons:
            by_source.setdefault(person.source, []).append(person.to_coco())
        for number, entries in enumerate(by_source.values() or [[]]):
            suffix = f'_{number}' if number else ''
            path = f'{self.outfile_prefix}{suffix}.keypoints.json'
            text = json.dumps(entries, ensure_ascii=False, allow_nan=False)
            mmengine.fileio.put_text(text, path)
            print_log(f'KeypointOKSMetric: wrote {path}', logger='current')

    def _warn_missing(
        self,
        truth: list[OksPerson],
        predictions: list[OksPerson],
        sources: list[Source],
    ) -> None:
        annotated = {person.image for person in truth if not person.ignore}
        missing = annotated - {person.image for person in predictions}
        if missing:
            files = ', '.join(source.ann_file for source in sources)
            print_log(
                f'KeypointOKSMetric: {len(missing)} of {len(annotated)} annotated '
                f'images of {files} have no prediction; their persons count as missed',
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
