"""Training data in the form of the official training lists."""

import os.path as osp
from collections import Counter
from typing import Any

import numpy as np
from PIL import Image

from sapiens2_mm.registry import DATASETS

from ..checking.keypoint_doubts import table_doubts
from ..io.image import read_header
from ..io.json_file import check_records, load_json
from ..metainfo.humans308 import NUM_SOURCE_KEYPOINTS, TOOTH_IDS
from .coco_keypoints import EMPTY_BOX, NOT_FINITE
from .humans308_dataset import Humans308Dataset

MIN_VISIBLE = 8
MIN_VISIBLE_BODY = 6
NUM_BODY_POINTS = 21  # ids 0..20: head, limbs and feet
NUM_CROWD_POINTS = 70  # all but the face, in the files with several persons


@DATASETS.register_module()
class Sapiens2KeypointListDataset(Humans308Dataset):
    """A JSON list of samples, keypoints in one file per image.

    The official data lie in a store that is not published; this is the layout in
    files::

        data_root/train.json            [{"sample_id": "a1"}, {"sample_id": "b", ...}]
        data_root/images/a1.jpg         data_prefix['img'], img_suffix
        data_root/keypoints/a1.json     data_prefix['keypoints']; or a1.npy

    A sample has ``sample_id`` (or ``airstore_id``). Its keypoint file holds 3 x 344
    numbers (rows x, y, confidence; pixels); the 36 tooth points are removed. A sample
    with a ``person_id`` belongs to an image of several persons: its file is a list,
    the entry ``person_id`` holds 3 x N numbers of which the first 70 are used.

    A point is visible if its confidence is > 0 and it lies strictly inside the image.
    The box is the extent of the visible points (a ``box-default`` of the sample is
    not used). Left out, with one log line of counts: samples with fewer than 8 visible
    points or fewer than 6 among the first 21, and grayscale image files; these rules
    do not apply to samples with a ``person_id``, which need one visible point.

    Args:
        img_suffix: suffix of the image files.
        **kwargs: arguments of ``Humans308Dataset``; ``data_prefix`` defaults to
            ``dict(img='images', keypoints='keypoints')``.

    Source: official pose training data sets (rules of selection); the file layout
    is ours.
    """

    FOLDERS = ('img', 'keypoints')

    def __init__(
        self,
        *args: Any,
        img_suffix: str = '.jpg',
        data_prefix: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        if kwargs.get('test_mode'):
            raise ValueError(
                f'{type(self).__name__} is for training; test with Humans308Dataset'
            )
        self.img_suffix = img_suffix
        if data_prefix is None:
            data_prefix = dict(img='images', keypoints='keypoints')
        super().__init__(*args, data_prefix=data_prefix, **kwargs)

    def _load_annotations(self) -> tuple[list[dict], list[dict]]:
        samples = load_json(self.ann_file)
        check_records(samples, {}, f'{self.ann_file}: sample')
        samples = samples[:: self.sample_interval]
        self._add_doubts('metainfo', table_doubts(self.metainfo))
        instances = []
        faults: Counter[str] = Counter()
        for index, sample in enumerate(samples):
            instance, fault = self._read_sample(index, sample)
            instances.append(instance)
            if fault:
                faults[fault] += 1
        self._report(faults, len(samples), len(samples))
        return instances, []

    def _read_sample(self, index: int, sample: dict) -> tuple[dict, str | None]:
        sample_id = sample.get('sample_id', sample.get('airstore_id'))
        if sample_id is None:
            raise ValueError(f'{self.ann_file}: sample {index} has no sample_id')
        img_path = osp.join(self.data_prefix['img'], f'{sample_id}{self.img_suffix}')
        height, width, mode = read_header(img_path)
        is_gray = mode != 'P' and Image.getmodebands(mode) == 1
        person_id = sample.get('person_id')
        keypoints = self._read_keypoints(str(sample_id), person_id)
        x, y, confidence = keypoints
        visible = (confidence > 0) & (x > 0) & (x < width) & (y > 0) & (y < height)
        points = keypoints[:2, visible].T
        box = np.zeros(4, dtype=np.float32)
        if len(points):
            box = np.concatenate([points.min(axis=0), points.max(axis=0)])
        fault = None
        if not np.isfinite(keypoints).all():
            fault = NOT_FINITE
        elif person_id is None and is_gray:
            fault = 'in grayscale'
        elif person_id is None and len(points) < MIN_VISIBLE:
            fault = f'with fewer than {MIN_VISIBLE} visible keypoints'
        elif person_id is None and visible[:NUM_BODY_POINTS].sum() < MIN_VISIBLE_BODY:
            fault = (
                f'with fewer than {MIN_VISIBLE_BODY} of the first {NUM_BODY_POINTS} '
                'keypoints visible'
            )
        elif (box[2:] <= box[:2]).any():
            fault = EMPTY_BOX
        instance = dict(
            img_id=sample_id,
            img_path=img_path,
            id=index,
            category_id=None,
            bbox=box[None].astype(np.float32),
            bbox_score=np.ones(1, dtype=np.float32),
            keypoints=np.ascontiguousarray(keypoints[:2].T)[None],
            keypoints_visible=visible[None].astype(np.float32),
            num_keypoints=len(points),
            area=np.float32(0.53 * np.prod(box[2:] - box[:2])),
            iscrowd=0,
            segmentation=None,
            fault=fault,
        )
        return instance, fault

    def _read_keypoints(self, sample_id: str, person_id: int | None) -> np.ndarray:
        """(3, K) float32: x, y, confidence of the metainfo's keypoints."""
        stem = osp.join(self.data_prefix['keypoints'], sample_id)
        path = stem + ('.npy' if osp.isfile(stem + '.npy') else '.json')
        content = np.load(path) if path.endswith('.npy') else load_json(path)
        least = NUM_SOURCE_KEYPOINTS if person_id is None else NUM_CROWD_POINTS
        try:
            if person_id is not None:
                content = dict(enumerate(content))[person_id]
            points = np.asarray(content, dtype=np.float32)
            if points.ndim != 2 or points.shape[0] != 3 or points.shape[1] < least:
                raise ValueError(f'shape {points.shape}')
        except (TypeError, ValueError, KeyError) as err:
            raise ValueError(
                f'{path}: person_id {person_id!r}: expected 3 x {least} numbers (x, y, '
                f'confidence), got {err!r}'
            ) from err
        if person_id is None:
            return np.delete(points[:, :NUM_SOURCE_KEYPOINTS], TOOTH_IDS, axis=1)
        keypoints = np.zeros((3, self.metainfo['num_keypoints']), dtype=np.float32)
        keypoints[:, :NUM_CROWD_POINTS] = points[:, :NUM_CROWD_POINTS]
        return keypoints
