"""Read a COCO-style keypoint file; used by the dataset and by its metric.

Both must agree on which person counts, so the decision is made once, here.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..io.json_file import Id, Number, check_record, check_records, load_json

# Reasons to leave a person out, in the order in which they are tried.
CROWD = 'crowd'
NO_KEYPOINTS = 'without a box or keypoints'
NOT_FINITE = 'with a box or keypoints that are not finite'
EMPTY_BOX = 'with an empty or negative box'
OUTSIDE = 'with a box outside the image'
UNLABELED = 'without a labeled keypoint inside the image'
OTHER_CATEGORY = 'of another category'


@dataclass
class PersonAnnotation:
    """One person of a COCO-style file.

    Attributes:
        id: annotation id, any JSON number or string.
        image_id: id of the image.
        category_id: as in the file.
        bbox: (4,) float32, xyxy in pixels, clipped to the image.
        raw_bbox: (4,) float64, xywh as in the file; zeros without one.
        keypoints: (K, 3) float32, x, y in pixels and v; v is 0 unlabeled, 1
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
    raw_bbox: np.ndarray
    keypoints: np.ndarray
    area: float
    iscrowd: bool
    segmentation: Any
    fault: str | None

    @property
    def num_labeled(self) -> int:
        return int(np.count_nonzero(self.keypoints[:, 2] > 0))


@dataclass
class CocoKeypoints:
    """The images and persons of a COCO-style keypoint file.

    Attributes:
        ann_file: path of the file.
        images: image id -> entry of the file (``file_name``, ``width``, ``height``).
        persons: in the order of the file; of the wanted categories only.
        categories: the file's category entries.
        num_others: annotations of other categories.
    """

    ann_file: str
    images: dict[Hashable, dict]
    persons: list[PersonAnnotation]
    categories: list[dict]
    num_others: int = 0

    @property
    def num_annotations(self) -> int:
        return len(self.persons) + self.num_others

    def fault_counts(self) -> Counter[str]:
        """Why annotations are left out -> how many."""
        counts = Counter(person.fault for person in self.persons if person.fault)
        return counts + Counter({OTHER_CATEGORY: self.num_others})


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
        num_keypoints: K of the metainfo.
        keypoints_key: field of an annotation that holds the 3 x K numbers; None
            takes ``goliath_wholebody_kpts`` where present, else ``keypoints``.
        category_names: keep annotations of these categories only; None keeps all.

    Raises:
        ValueError: if the file is no JSON or not of this form, an id occurs twice or
            points to nothing, an image has no size, a category name is unknown, or an
            annotation has another number of keypoints than the metainfo.
    """
    content = load_json(ann_file)
    check_record(content, dict(images=list, annotations=list), ann_file)
    images, annotations = content['images'], content['annotations']
    fields = dict(id=Id, file_name=str, width=Number, height=Number)
    check_records(images, fields, f'{ann_file}: image')
    check_records(annotations, dict(id=Id, image_id=Id), f'{ann_file}: annotation')
    for image in images:
        if not (image['width'] >= 1 and image['height'] >= 1):
            raise ValueError(
                f'{ann_file}: image {image["id"]!r}: width and height must be at least '
                f'1 pixel, got {image["width"]} and {image["height"]}'
            )
    categories = content.get('categories') or []
    fields = {} if category_names is None else dict(id=Id, name=str)
    check_records(categories, fields, f'{ann_file}: category')
    num_annotations = len(annotations)
    if category_names is not None:
        read = f'read {len(images)} images and {len(annotations)} annotations'
        wanted = _category_ids(categories, category_names, ann_file, read)
        annotations = [ann for ann in annotations if ann.get('category_id') in wanted]
    images = _by_id(images, f'{ann_file}: image')
    persons = []
    for number, annotation in _by_id(annotations, f'{ann_file}: annotation').items():
        where = f'{ann_file}: annotation {number!r}'
        image = image_of(annotation, images, where)
        persons.append(
            _read_person(annotation, image, num_keypoints, keypoints_key, where)
        )
    num_others = num_annotations - len(persons)
    return CocoKeypoints(ann_file, images, persons, categories, num_others)


def _category_ids(
    categories: list[dict], names: Sequence[str], ann_file: str, read: str
) -> list[Any]:
    """Ids of all categories of these names; ``read`` is part of the error."""
    known = [category['name'] for category in categories]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f'{ann_file}: category_names {unknown} are not in the file, which has '
            f'{known}; {read}, all would be dropped'
        )
    return [category['id'] for category in categories if category['name'] in names]


def _by_id(records: list[dict], where: str) -> dict[Hashable, dict]:
    by_id = {record['id']: record for record in records}
    if len(by_id) < len(records):
        counts = Counter(record['id'] for record in records)
        raise ValueError(f'{where}: id {counts.most_common(1)[0][0]!r} is used twice')
    return by_id


def image_of(record: dict, images: dict[Hashable, dict], where: str) -> dict:
    """The image that an annotation or detection belongs to.

    Raises:
        ValueError: if there is no such image; begins with ``where``.
    """
    image_id = record['image_id']
    if image_id not in images:
        raise ValueError(f'{where}: there is no image with image_id {image_id!r}')
    return images[image_id]


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
    flat = as_floats(annotation.get(key) or [], f'{where}: {key}')
    box = as_floats(annotation.get('bbox') or [], f'{where}: bbox', 0, 4)
    if flat.size not in (0, 3 * num_keypoints):
        raise ValueError(
            f'{where}: {key} has {flat.size / 3:g} keypoints ({flat.size} numbers), '
            f"expected {num_keypoints}; set the dataset's metainfo to that of the file"
        )
    iscrowd = annotation.get('iscrowd') or 0
    if iscrowd not in (0, 1):
        raise ValueError(f'{where}: iscrowd must be 0 or 1, got {iscrowd!r}')
    keypoints = np.zeros((num_keypoints, 3), dtype=np.float32)
    raw_box, clipped = np.zeros(4), np.zeros(4, dtype=np.float32)
    fault = CROWD if iscrowd else None
    if not flat.size or not box.size:
        fault = fault or NO_KEYPOINTS
    elif not np.isfinite(flat).all() or not np.isfinite(box).all():
        fault = fault or NOT_FINITE
    else:
        keypoints, raw_box = flat.reshape(num_keypoints, 3).astype(np.float32), box
        corners = np.concatenate([box[:2], box[:2] + box[2:]])
        limits = np.array([image['width'], image['height']] * 2) - 1
        clipped = np.clip(corners, 0, limits).astype(np.float32)
        if (box[2:] <= 0).any():
            fault = fault or EMPTY_BOX
        elif not (clipped[2:] > clipped[:2]).all():
            fault = fault or OUTSIDE
        elif not labeled_inside(keypoints, image['width'], image['height']).any():
            fault = fault or UNLABELED
    area = as_floats(annotation.get('area') or 0, f'{where}: area', 1)
    if not 0 < area[0] < np.inf:
        area = 0.53 * np.prod(clipped[2:] - clipped[:2], keepdims=True)
    return PersonAnnotation(
        id=annotation['id'],
        image_id=annotation['image_id'],
        category_id=annotation.get('category_id'),
        bbox=clipped,
        raw_bbox=raw_box,
        keypoints=keypoints,
        area=float(area[0]),
        iscrowd=bool(iscrowd),
        segmentation=annotation.get('segmentation'),
        fault=fault,
    )


def labeled_inside(keypoints: np.ndarray, width: int, height: int) -> np.ndarray:
    """(K,) bool: labeled (v > 0) and inside the image.

    A point labeled outside the image lies on no pixel; it is not trained on.
    """
    x, y, v = keypoints.T
    return (v > 0) & (x >= 0) & (x < width) & (y >= 0) & (y < height)


def as_floats(values: Any, where: str, *sizes: int) -> np.ndarray:
    """(N,) float64 of one number or a list; N is one of ``sizes``, if given.

    Raises:
        ValueError: begins with ``where``.
    """
    try:
        numbers = np.asarray(values, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError) as err:
        raise ValueError(f'{where}: expected numbers, got {values!r:.80}') from err
    if sizes and numbers.size not in sizes:
        raise ValueError(f'{where}: expected {sizes[-1]} numbers, got {values!r:.80}')
    return numbers
