"""From the results of all processes to one list of predicted persons."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .oks import instance_score, keypoint_extent, oks_nms


@dataclass(frozen=True)
class Source:
    """Annotations that a dataset shows.

    Attributes:
        ann_file: path of the file.
        keypoints_key: see ``read_coco_keypoints``.
        category_names: see ``read_coco_keypoints``.
        part: the samples show some persons of the file, which alone count.
    """

    ann_file: str
    keypoints_key: str | None = None
    category_names: tuple[str, ...] | None = None
    part: bool = False


@dataclass
class PredictedPerson:
    """One predicted person.

    Attributes:
        source: where its image is annotated; None if nothing is scored.
        image_id: id of its image in the annotation file.
        category_id: as in the data sample; None if it has none.
        keypoints: (K, 2) float32, image pixels.
        keypoint_scores: (K,) float32.
        box: (4,) xyxy in pixels, or None.
        score: of the box times that of the keypoints.
    """

    source: Source | None
    image_id: Hashable
    category_id: Any
    keypoints: np.ndarray
    keypoint_scores: np.ndarray
    box: np.ndarray | None
    score: float

    def to_coco(self) -> dict[str, Any]:
        """Entry of a COCO result list, of plain numbers."""
        points = np.column_stack([self.keypoints, self.keypoint_scores])
        entry = dict(
            image_id=self.image_id,
            category_id=self.category_id,
            keypoints=points.reshape(-1).tolist(),
            score=self.score,
        )
        if self.box is not None:
            x1, y1, x2, y2 = map(float, self.box)
            entry['bbox'] = [x1, y1, x2 - x1, y2 - y1]
        return entry


def collect_persons(
    results: Sequence[dict], keypoint_score_thr: float
) -> dict[tuple[Source | None, Hashable], list[PredictedPerson]]:
    """Scored persons by source and image; of equal samples (padding) the first counts.

    Args:
        results: one dict per data sample, as ``KeypointOKSMetric.process`` makes them.
        keypoint_score_thr: see ``instance_score``.
    """
    by_image: dict[tuple, list[PredictedPerson]] = defaultdict(list)
    seen = set()
    for number, result in enumerate(results):
        image, sample_id = (result['source'], result['img_id']), result['id']
        if isinstance(sample_id, list):  # bottom-up: all persons of an image
            sample_id = tuple(sample_id)
        key = (image, number if sample_id is None else sample_id)
        if key in seen:
            continue
        seen.add(key)
        for index, keypoints in enumerate(result['keypoints']):
            scores = result['keypoint_scores'][index]
            box_score = float(result['box_scores'][index])
            by_image[image].append(
                PredictedPerson(
                    source=result['source'],
                    image_id=result['img_id'],
                    category_id=result['category_id'],
                    keypoints=keypoints,
                    keypoint_scores=scores,
                    box=None if result['boxes'] is None else result['boxes'][index],
                    score=instance_score(scores, box_score, keypoint_score_thr),
                )
            )
    return by_image


def apply_oks_nms(
    persons: list[PredictedPerson], sigmas: np.ndarray, threshold: float
) -> list[PredictedPerson]:
    """Of persons of one image with an OKS above ``threshold``, keep the best."""
    keypoints = np.stack([person.keypoints for person in persons])
    kept = oks_nms(
        keypoints,
        np.array([person.score for person in persons]),
        keypoint_extent(keypoints),
        sigmas,
        threshold,
    )
    return [persons[index] for index in kept]
