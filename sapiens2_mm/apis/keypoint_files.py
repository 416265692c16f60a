"""Keypoints in the forms of COCO's and OpenPose's files."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .results import PoseResult


def coco_results(
    result: PoseResult, image_id: Any, fields: Mapping[str, range], absent: np.ndarray
) -> list[dict[str, Any]]:
    """The people of a picture as COCO's results.

    Args:
        result: people with a number that is not finite are left out, for COCO's readers
            know no null.
        image_id: of the picture.
        fields: see ``KeypointSet``; all keypoints are ``keypoints`` if it lacks that.
        absent: (K,) bool, keypoints written as 0, 0, 0.
    """
    fields = _coco_fields(fields, len(absent))
    scores = result.keypoint_scores[:, ~absent].mean(axis=1)
    found = []
    for box, points, score in zip(
        result.boxes, _triplets(result, absent), scores, strict=True
    ):
        if np.isfinite(points).all():
            box = np.concatenate((box[:2], box[2:] - box[:2])).astype(float)
            person = dict(image_id=image_id, category_id=1, bbox=box.tolist())
            person.update(_fill(fields, points))
            found.append(dict(person, score=float(score)))
    return found


def coco_category(
    metainfo: Mapping[str, Any], fields: Mapping[str, range]
) -> dict[str, Any]:
    """COCO's category of people, with the names of each field and links from 1.

    Args:
        metainfo: of the keypoints, parsed.
        fields: see ``coco_results``.
    """
    names = metainfo['keypoint_id2name']
    fields = _coco_fields(fields, metainfo['num_keypoints'])
    first = fields['keypoints']
    links = [
        [start + 1, end + 1]
        for start, end in metainfo['skeleton_links']
        if start in first and end in first
    ]
    category = dict(id=1, name='person', supercategory='person')
    category.update({key: [names[i] for i in ids] for key, ids in fields.items()})
    return dict(category, skeleton=links)


def openpose_picture(
    result: PoseResult, fields: Mapping[str, range], absent: np.ndarray
) -> dict[str, Any]:
    """The people of a picture as OpenPose writes them, version 1.3 of its format.

    Args:
        result: with the keypoints of the set ``'openpose'``.
        fields: of that set.
        absent: (K,) bool; written as 0, 0, 0, as is each point that is not finite.
    """
    points = _triplets(result, absent)
    points[~np.isfinite(points).all(axis=2)] = 0
    empty = {field.replace('2d', '3d'): [] for field in fields}
    return dict(
        version=1.3,
        people=[dict(person_id=[-1], **_fill(fields, one), **empty) for one in points],
    )


def _coco_fields(fields: Mapping[str, range], count: int) -> Mapping[str, range]:
    return fields if 'keypoints' in fields else dict(keypoints=range(count))


def _fill(fields: Mapping[str, range], points: np.ndarray) -> dict[str, list[float]]:
    """Field -> x, y, score of its points, in one list."""
    return {field: points[ids].ravel().tolist() for field, ids in fields.items()}


def _triplets(result: PoseResult, absent: np.ndarray) -> np.ndarray:
    """(N, K, 3) float64: x, y, score."""
    scores = result.keypoint_scores[..., None]
    points = np.concatenate((result.keypoints, scores), axis=2).astype(float)
    points[:, absent] = 0
    return points
