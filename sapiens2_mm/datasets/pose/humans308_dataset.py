"""Top-down keypoint data in COCO-style JSON, 308 keypoints by default."""

import copy
import logging
import os.path as osp
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.logging import MessageHub, print_log
from mmpose.datasets.datasets.base import BaseCocoStyleDataset
from mmpose.datasets.datasets.utils import parse_pose_metainfo

from sapiens2_mm.registry import DATASETS

from ..checking.doubts import log_doubts
from ..checking.keypoint_doubts import (
    box_doubts,
    category_doubts,
    point_doubts,
    table_doubts,
)
from ..io.json_file import Id, Number, check_records, load_json
from ..metainfo.humans308 import METAINFO
from ..metainfo.keypoint_metainfo import check_keypoint_metainfo, keypoint_groups
from .coco_keypoints import (
    EMPTY_BOX,
    OTHER_CATEGORY,
    CocoKeypoints,
    PersonAnnotation,
    as_floats,
    describe_faults,
    image_of,
    labeled_inside,
    read_coco_keypoints,
)

# Metainfo that mmpose's transforms and heads read from every sample.
_SAMPLE_METAINFO = (
    'dataset_name',
    'upper_body_ids',
    'lower_body_ids',
    'flip_pairs',
    'dataset_keypoint_weights',
    'flip_indices',
    'skeleton_links',
)


@DATASETS.register_module()
class Humans308Dataset(BaseCocoStyleDataset):
    """COCO-style keypoint data, one sample per person.

    Annotations hold ``keypoints`` (or, as the official evaluation files,
    ``goliath_wholebody_kpts``): 3 x K numbers x, y, v in pixels, v > 0 labeled.
    Ids may be any numbers or strings, the category id is free. Boxes are clipped to
    the image. Persons that cannot be trained on (crowds, empty boxes, boxes outside
    the image, numbers that are not finite, nothing labeled) are left out, with one
    log line of counts. A point labeled outside the image is not trained on.

    For an own keypoint set give its ``metainfo`` in mmpose's form (``dataset_name``,
    ``keypoint_info``, ``sigmas``; links and weights optional), as a dict or as
    ``dict(from_file='keypoints.py')``. Without ``keypoint_info`` its parts, such as
    ``joint_weights``, replace those of the 308 keypoints.

    Args:
        keypoints_key: annotation field with the keypoints; None takes
            ``goliath_wholebody_kpts`` where present, else ``keypoints``.
        category_names: use only annotations of these categories (or of this one);
            None uses all.
        **kwargs: arguments of mmpose's ``BaseCocoStyleDataset``.

    Raises:
        ValueError: for faulty metainfo or files, and if no person is left; the message
            names the file and counts what was read and dropped.
    """

    METAINFO = METAINFO
    FOLDERS = ('img',)  # that data_prefix must name

    def __init__(
        self,
        *args: Any,
        keypoints_key: str | None = None,
        category_names: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        if isinstance(category_names, str):
            category_names = [category_names]
        self.keypoints_key = keypoints_key
        self.category_names = category_names
        self.doubts: list[str] = []
        self._read_summary = ''
        self._nobody_detected = False
        super().__init__(*args, **kwargs)

    @classmethod
    def _load_metainfo(cls, metainfo: dict | None = None) -> dict:
        if not isinstance(metainfo, dict | None):
            raise TypeError(
                f'{cls.__name__}: metainfo must be a dict with keypoint_info, or '
                f"dict(from_file='keypoints.py'), got {metainfo!r:.80}"
            )
        metainfo = dict(metainfo or {})
        path = metainfo.get('from_file')
        if path is not None and osp.isfile(path):
            content = Config.fromfile(path)
            if 'dataset_info' not in content:
                raise ValueError(f'{path} has no dataset_info, the keypoint metainfo')
            metainfo = dict(content.dataset_info)
        if 'from_file' in metainfo:  # a file of mmpose, found by mmpose
            return parse_pose_metainfo(metainfo)
        if 'keypoint_info' not in metainfo:
            if unknown := set(metainfo) - set(cls.METAINFO):
                raise ValueError(
                    f'{cls.__name__}: metainfo {sorted(unknown)} is none of '
                    f'{list(cls.METAINFO)}'
                )
            metainfo = {**cls.METAINFO, **metainfo}
        check_keypoint_metainfo(metainfo)
        metainfo.setdefault('skeleton_info', {})
        metainfo.setdefault('joint_weights', [1.0] * len(metainfo['keypoint_info']))
        parsed = parse_pose_metainfo(metainfo)
        parsed['keypoint_groups'] = keypoint_groups(metainfo)
        return parsed

    def full_init(self) -> None:
        """Read the annotations."""
        if not set(self.FOLDERS) <= set(self.data_prefix):
            raise ValueError(
                f'{type(self).__name__}: data_prefix must name the folders '
                f'{self.FOLDERS}, got {self.data_prefix}'
            )
        super().full_init()

    def get_data_info(self, idx: int) -> dict:
        """A sample, with the parts of the metainfo that mmpose gives it.

        mmpose copies every pair and link each time, which for 308 keypoints is 40 % of
        the time to load a sample; here only the outer list is copied.
        """
        data_info = BaseDataset.get_data_info(self, idx)
        data_info |= {key: copy.copy(self._metainfo[key]) for key in _SAMPLE_METAINFO}
        if self.test_mode:
            part = self._indices is not None or self.sample_interval > 1
            # What the metric needs to read the same persons from the same file.
            data_info['raw_ann_info'] = dict(
                ann_file=self.ann_file,
                keypoints_key=self.keypoints_key,
                category_names=self.category_names,
                part=part and self.bbox_file is None,
            )
        return data_info

    def _load_annotations(self) -> tuple[list[dict], list[dict]]:
        content = read_coco_keypoints(
            self.ann_file,
            self.metainfo['num_keypoints'],
            self.keypoints_key,
            self.category_names,
        )
        if self.test_mode:  # mmpose's metrics look here
            self._metainfo['CLASSES'] = content.categories
            hub = MessageHub.get_current_instance()
            hub.update_info(f'{self.metainfo["dataset_name"]}_ann_file', self.ann_file)
        position = {image_id: i for i, image_id in enumerate(content.images)}
        self._doubt(content)
        images = [
            {**image, 'img_id': image['id'], 'img_path': self._img_path(image)}
            for image in content.images.values()
        ][:: self.sample_interval]
        kept = {image['img_id'] for image in images}
        persons = sorted(content.persons, key=lambda p: position[p.image_id])
        instances = [
            self._instance(person, content.images[person.image_id])
            for person in persons
            if person.image_id in kept
        ]
        faults, number = content.fault_counts(), content.num_annotations
        self._report(faults, len(content.images), number)
        return instances, images

    def _doubt(self, content: CocoKeypoints) -> None:
        """Say what a run accepts, but can hardly be meant."""
        persons = [person for person in content.persons if person.raw_bbox.any()]
        ids = [person.id for person in persons]
        images = [content.images[person.image_id] for person in persons]
        sizes = [(image['width'], image['height']) for image in images]
        sizes = np.reshape(sizes, (-1, 2))
        boxes = np.reshape([person.raw_bbox for person in persons], (-1, 4))
        doubts = [
            *table_doubts(self.metainfo),
            *category_doubts(content.categories, self.metainfo),
            *box_doubts(ids, boxes, sizes),
            *point_doubts(ids, [person.keypoints for person in persons], sizes),
        ]
        self._add_doubts(self.ann_file, doubts)

    def _add_doubts(self, path: str, doubts: Iterable[str]) -> None:
        doubts = [f'{path}: {doubt}' for doubt in doubts]
        log_doubts(type(self).__name__, doubts)
        self.doubts += doubts

    def _report(self, faults: Counter[str], num_images: int, num_persons: int) -> None:
        self._read_summary = f'read {num_images} images and {num_persons} annotations'
        if faults:
            self._read_summary += f', left out {describe_faults(faults)}'
            print_log(
                f'{type(self).__name__}: {self.ann_file}: {self._read_summary}',
                logger='current',
            )

    def _img_path(self, image: dict) -> str:
        return osp.join(self.data_prefix['img'], image['file_name'])

    def _instance(self, person: PersonAnnotation, image: dict) -> dict:
        visible = labeled_inside(person.keypoints, image['width'], image['height'])
        if person.fault is not None:  # stays in bottom-up samples, trains nothing
            visible = np.zeros_like(visible)
        return dict(
            img_id=person.image_id,
            img_path=self._img_path(image),
            annotated_size=(image['height'], image['width']),
            id=person.id,
            category_id=person.category_id,
            bbox=person.bbox[None],
            bbox_score=np.ones(1, dtype=np.float32),
            keypoints=person.keypoints[None, :, :2],
            keypoints_visible=visible[None].astype(np.float32),
            num_keypoints=person.num_labeled,
            area=np.float32(person.area),
            iscrowd=int(person.iscrowd),
            segmentation=person.segmentation,
            fault=person.fault,
        )

    @staticmethod
    def _is_valid_instance(data_info: dict) -> bool:
        return data_info['fault'] is None

    def _load_detection_results(self) -> list[dict]:
        _, images = self._load_annotations()
        by_id = {image['img_id']: image for image in images}
        detections = load_json(self.bbox_file)
        self._nobody_detected = detections == []
        fields = dict(image_id=Id, bbox=list, score=Number)
        check_records(detections, fields, f'{self.bbox_file}: detection')
        num_keypoints = self.metainfo['num_keypoints']
        wanted = [
            category.get('id')
            for category in self._metainfo['CLASSES']
            if self.category_names is None or category['name'] in self.category_names
        ]
        data_list, boxes, sizes = [], [], []
        faults: Counter[str] = Counter()
        for index, detection in enumerate(detections):
            where = f'{self.bbox_file}: detection {index}'
            image = image_of(detection, by_id, where)
            box = as_floats(detection['bbox'], f'{where}: bbox', 4)
            score = np.array([detection['score']])
            boxes.append(box)
            sizes.append((image['width'], image['height']))
            if wanted and detection.get('category_id') not in wanted:
                faults[OTHER_CATEGORY] += 1
            elif not np.isfinite([*box, *score]).all():
                faults['with a box or score that is not finite'] += 1
            elif (box[2:] <= 0).any():
                faults[EMPTY_BOX] += 1
            else:
                corners = np.concatenate([box[:2], box[:2] + box[2:]])
                data_list.append(
                    dict(
                        img_id=image['img_id'],
                        img_path=image['img_path'],
                        annotated_size=(image['height'], image['width']),
                        id=index,
                        category_id=detection.get('category_id'),
                        bbox=corners.astype(np.float32)[None],
                        bbox_score=score.astype(np.float32),
                        # Stand-ins; a detection has no annotation.
                        keypoints=np.zeros((1, num_keypoints, 2), np.float32),
                        keypoints_visible=np.ones((1, num_keypoints), np.float32),
                    )
                )
        self._add_doubts(
            self.bbox_file,
            box_doubts(
                range(len(boxes)),
                np.reshape(boxes, (-1, 4)),
                np.reshape(sizes, (-1, 2)),
            ),
        )
        self._read_summary += f'; read {len(detections)} detections'
        if faults:
            self._read_summary += f', left out {describe_faults(faults)}'
            print_log(
                f'{type(self).__name__}: {self.bbox_file}: {self._read_summary}',
                logger='current',
            )
        return data_list

    def filter_data(self) -> list[dict]:
        return self._not_empty(super().filter_data(), 'filter_cfg')

    def _get_unserialized_subset(self, indices: int | Sequence[int]) -> list[dict]:
        try:
            data_list = super()._get_unserialized_subset(indices)
        except IndexError:
            data_list = []
        return self._not_empty(data_list, f'indices {indices}')

    def _serialize_data(self) -> tuple[np.ndarray, np.ndarray]:
        if not self.data_list:  # of a detector that found nobody
            return np.zeros(0, np.uint8), np.zeros(0, np.int64)
        return super()._serialize_data()

    def _not_empty(self, data_list: list[dict], step: str) -> list[dict]:
        """``data_list``, or an error that counts what was read and dropped.

        That a detector found nobody is a result to be scored, as AP 0.
        """
        if self._nobody_detected:
            print_log(
                f'{type(self).__name__}: {self.bbox_file} holds no detection',
                logger='current',
                level=logging.WARNING,
            )
        elif not data_list:
            raise ValueError(
                f'{type(self).__name__}: no person is left of '
                f'{self.bbox_file or self.ann_file}: {self._read_summary}, dropped '
                f'{len(self.data_list)} by {step}'
            )
        return data_list
