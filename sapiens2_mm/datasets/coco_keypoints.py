"""Read a COCO-style keypoint file; used by the dataset and by its metric.

Both must agree on which person counts, so the decision is made once, here.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mmengine.fileio import load

# Reasons to leave a person out, in the order in which they are tried.
CROWD = 'crowd'
NO_KEYPOINTS = 'without a box or keypoints'
NOT_FINITE = 'with a box or keypoints that are not finite'
EMPTY_BOX = 'with an empty or negative box'
OUTSIDE = 'with a box outside the image'
UNLABELLED = 'without a labelled keypoint inside the image'


@dataclass
class PersonAnnotation:
    """One person of a COCO-style file.

    Attributes:
        id: annotation id, any JSON number or string.
        image_id: id of the image.
        category_id: as in the file.
        bbox: (4,) float32, xyxy in pixels, clipped to the image.
        keypoints: (K, 3) float32, x, y in pixels and v; v is 0 unlabelled, 1
            occluded, 2 visible.
        area: pixels squared, as in the file, or 0.53 of the box if it gives none.
        iscrowd: True for a group of persons that is not annotated one by one.
        segmentation: as in the file.
        fault: why the person is neither trained on nor scored; None if it is.
    """

    id: Hashable
    image_id: Hashable
    category_id: Any
    bbox: np.ndarray
    keypoints: np.ndarray
    area: float
    iscrowd: bool
    segmentation: Any
    fault: str | None

    @property
    def num_labelled(self) -> int:
        return int(np.count_nonzero(self.keypoints[:, 2] > 0))


@dataclass
class CocoKeypoints:
    """The images and persons of a COCO-style keypoint file.

    Attributes:
        ann_file: path of the file.
        images: image id -> entry of the file (``file_name``, ``width``, ``height``).
        persons: in the order of the file; of the wanted categories only.
        categories: the file's category entries.
    """

    ann_file: str
    images: dict[Hashable, dict]
    persons: list[PersonAnnotation]
    categories: list[dict]

    def fault_counts(self) -> Counter[str]:
        return Counter(person.fault for person in self.persons if person.fault)


def describe_faults(counts: Counter[str]) -> str:
    """Such as ``'2 crowd, 1 with an empty or negative box'``."""
    return ', '.join(f'{count} {fault}' for fault, count in counts.items())


def read_coco_keypoints(
    ann_file: str,
    num_keypoints: int,
    keypoints_key: str | None = None,
    category_names: Sequence[str] | None = None,
) -> CocoKeypoints:
    """Read and check a COCO-style keypoint file.

    Args:
        ann_file: path or URL of the JSON file.
        num_keypoints: K of the keypoint table.
        keypoints_key: field of an annotation that holds the 3 x K numbers; None
            takes ``goliath_wholebody_kpts`` where present, else ``keypoints``.
        category_names: keep annotations of these categories only; None keeps all.

    Raises:
        ValueError: if the file is not of this form, an id occurs twice or points to
            nothing, an image has no size, a category name is unknown, or an
            annotation has another number of keypoints than the table.
    """
    content = load(ann_file, file_format='json')
    if not isinstance(content, dict) or not all(
        isinstance(content.get(key), list) for key in ('images', 'annotations')
    ):
        raise ValueError(
            f'{ann_file} is not a COCO-style file: expected an object with the lists '
            '"images" and "annotations"'
        )
    images = _read_images(content['images'], ann_file)
    annotations = content['annotations']
    categories = content.get('categories', [])
    if category_names is not None:
        known = {category['name']: category['id'] for category in categories}
        unknown = [name for name in category_names if name not in known]
        if unknown:
            raise ValueError(
                f'{ann_file}: category_names {unknown} are not in the file, which has '
                f'{sorted(known)}; read {len(images)} images and {len(annotations)} '
                'annotations, all would be dropped'
            )
        wanted = {known[name] for name in category_names}
        annotations = [ann for ann in annotations if ann.get('category_id') in wanted]
    persons = []
    seen = set()
    for annotation in annotations:
        where = f'{ann_file}: annotation {annotation.get("id")!r}'
        if annotation.get('id') is None or annotation['id'] in seen:
            raise ValueError(f'{where}: the id is missing or used twice')
        seen.add(annotation['id'])
        if annotation.get('image_id') not in images:
            raise ValueError(
                f'{where}: image_id {annotation.get("image_id")!r} is not an image of '
                'the file'
            )
        image = images[annotation['image_id']]
        persons.append(
            _read_person(annotation, image, num_keypoints, keypoints_key, where)
        )
    return CocoKeypoints(ann_file, images, persons, categories)


def _read_images(entries: list[dict], ann_file: str) -> dict[Hashable, dict]:
    images: dict[Hashable, dict] = {}
    for entry in entries:
        image_id = entry.get('id')
        if image_id is None or image_id in images:
            raise ValueError(
                f'{ann_file}: image {image_id!r}: the id is missing or used twice'
            )
        missing = {'file_name', 'width', 'height'} - set(entry)
        if missing:
            raise ValueError(
                f'{ann_file}: image {image_id!r}: {sorted(missing)} missing'
            )
        images[image_id] = entry
    return images


def _read_person(
    annotation: dict,
    image: dict,
    num_keypoints: int,
    keypoints_key: str | None,
    where: str,
) -> PersonAnnotation:
    key = keypoints_key
    if key is None:
        official = 'goliath_wholebody_kpts'
        key = official if official in annotation else 'keypoints'
    flat = _as_floats(annotation.get(key) or [], f'{where}: {key}')
    box = _as_floats(annotation.get('bbox') or [], f'{where}: bbox')
    if flat.size not in (0, 3 * num_keypoints):
        raise ValueError(
            f'{where}: {key} has {flat.size / 3:g} keypoints ({flat.size} numbers), '
            f'expected {num_keypoints} ({3 * num_keypoints} numbers) as in the '
            "keypoint table; set the dataset's metainfo to the table of this file"
        )
    if box.size not in (0, 4):
        raise ValueError(f'{where}: bbox has {box.size} numbers, expected x, y, w, h')
    iscrowd = bool(annotation.get('iscrowd', 0))
    keypoints = np.zeros((num_keypoints, 3), dtype=np.float32)
    clipped = np.zeros(4, dtype=np.float32)
    fault = CROWD if iscrowd else None
    if not flat.size or not box.size:
        fault = fault or NO_KEYPOINTS
    elif not np.isfinite(flat).all() or not np.isfinite(box).all():
        fault = fault or NOT_FINITE
    else:
        keypoints = flat.reshape(num_keypoints, 3).astype(np.float32)
        corners = np.concatenate([box[:2], box[:2] + box[2:]])
        limits = np.array([image['width'], image['height']] * 2) - 1
        clipped = np.clip(corners, 0, limits).astype(np.float32)
        if (box[2:] <= 0).any():
            fault = fault or EMPTY_BOX
        elif (clipped[2:] <= clipped[:2]).any():
            fault = fault or OUTSIDE
        elif not labelled_inside(keypoints, image['width'], image['height']).any():
            fault = fault or UNLABELLED
    area = annotation.get('area')
    if area is None or not area > 0:
        area = 0.53 * float(np.prod(clipped[2:] - clipped[:2]))
    return PersonAnnotation(
        id=annotation['id'],
        image_id=annotation['image_id'],
        category_id=annotation.get('category_id'),
        bbox=clipped,
        keypoints=keypoints,
        area=float(area),
        iscrowd=iscrowd,
        segmentation=annotation.get('segmentation'),
        fault=fault,
    )


def labelled_inside(keypoints: np.ndarray, width: int, height: int) -> np.ndarray:
    """(K,) bool: labelled (v > 0) and inside the image.

    A point labelled outside the image lies on no pixel; it is not trained on.
    """
    x, y, v = keypoints.T
    return (v > 0) & (x >= 0) & (x <= width - 1) & (y >= 0) & (y <= height - 1)


def _as_floats(values: Any, where: str) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError) as err:
        raise ValueError(f'{where}: expected a flat list of numbers') from err
