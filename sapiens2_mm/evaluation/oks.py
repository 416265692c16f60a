"""Object keypoint similarity (OKS): scores, suppression and COCO's AP and AR."""

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

STAT_NAMES = (
    'AP',
    'AP .5',
    'AP .75',
    'AP (M)',
    'AP (L)',
    'AR',
    'AR .5',
    'AR .75',
    'AR (M)',
    'AR (L)',
)


@dataclass
class OksPerson:
    """One true or predicted person.

    Attributes:
        image: index of its image.
        keypoints: (K, 3) x, y in pixels and v (truth) or score (prediction).
        area: pixels squared; scales the distances (truth) or only sorts the person
            into a size class (prediction).
        bbox: (4,) x, y, w, h; used of ignored truth only.
        score: confidence of a prediction.
        ignore: truth that is not scored; a prediction that falls on it costs nothing.
    """

    image: int
    keypoints: np.ndarray
    area: float
    bbox: Sequence[float] = (0.0, 0.0, 0.0, 0.0)
    score: float = 1.0
    ignore: bool = False


def instance_score(
    keypoint_scores: np.ndarray, box_score: float, threshold: float = 0.2
) -> float:
    """Box score times the mean of the keypoint scores above ``threshold``.

    Args:
        keypoint_scores: (K,).
        box_score: score of the person's box.
        threshold: keypoints at or below it are left out; 0 if none is above.
    """
    counted = keypoint_scores[keypoint_scores > threshold]
    return float(box_score * counted.mean()) if counted.size else 0.0


def keypoint_extent(keypoints: np.ndarray) -> np.ndarray:
    """Area of the upright box around the points: (..., K, 2) to (...)."""
    return np.ptp(keypoints, axis=-2).prod(axis=-1)


def oks_matrix(
    keypoints: np.ndarray, areas: np.ndarray, sigmas: np.ndarray
) -> np.ndarray:
    """OKS between all pairs of predictions of one image.

    Args:
        keypoints: (N, K, 2) pixels.
        areas: (N,) pixels squared; a pair uses the mean of its two.
        sigmas: (K,).

    Returns:
        (N, N) in [0, 1].
    """
    squared = np.square(keypoints[:, None] - keypoints[None]).sum(axis=-1)
    area = (areas[:, None] + areas[None]) / 2 + np.spacing(1)
    return np.exp(-squared / (8 * np.square(sigmas) * area[..., None])).mean(axis=-1)


def oks_nms(
    keypoints: np.ndarray,
    scores: np.ndarray,
    areas: np.ndarray,
    sigmas: np.ndarray,
    threshold: float = 0.9,
) -> list[int]:
    """Greedy suppression: drop what resembles a better prediction too closely.

    Args:
        keypoints: (N, K, 2) pixels.
        scores: (N,).
        areas: (N,) pixels squared.
        sigmas: (K,).
        threshold: a prediction with a greater OKS to a kept one is dropped.

    Returns:
        Indices of the kept predictions, best first.
    """
    similar = oks_matrix(keypoints, areas, sigmas) > threshold
    kept: list[int] = []
    for index in np.argsort(-scores, kind='stable'):
        if not similar[index, kept].any():
            kept.append(int(index))
    return kept


def coco_oks_stats(
    truth: Sequence[OksPerson],
    predictions: Sequence[OksPerson],
    sigmas: np.ndarray,
    ids: Sequence[int] | None = None,
) -> dict[str, float]:
    """COCO's ten keypoint metrics, by pycocotools.

    Args:
        truth: all annotated persons. Without a labeled point (v > 0) among ``ids`` a
            person is ignored.
        predictions: all predicted persons; at most 20 per image count.
        sigmas: (K,).
        ids: keypoints to evaluate; None for all.

    Returns:
        ``STAT_NAMES`` -> value in [0, 1], or -1 where no truth of that size exists.
    """
    ids = np.arange(len(sigmas)) if ids is None else np.asarray(ids)
    with contextlib.redirect_stdout(io.StringIO()):  # pycocotools prints
        evaluator = COCOeval(
            _to_coco(truth, ids), _to_coco(predictions, ids), 'keypoints'
        )
        evaluator.params.kpt_oks_sigmas = np.asarray(sigmas, dtype=np.float64)[ids]
        images = {person.image for person in [*truth, *predictions]}
        evaluator.params.imgIds = sorted(images)
        evaluator.params.catIds = [1]
        evaluator.evaluate()
        evaluator.accumulate()
        evaluator.summarize()
    # Rounded: pycocotools' guard against 0 / 0 turns a 1 into 1 - 2e-16.
    return {
        name: round(float(value), 9)
        for name, value in zip(STAT_NAMES, evaluator.stats, strict=True)
    }


def _to_coco(persons: Sequence[OksPerson], ids: np.ndarray) -> COCO:
    # Ids start at 1: pycocotools takes a match with annotation 0 for no match.
    annotations = []
    for number, person in enumerate(persons, start=1):
        keypoints = person.keypoints[ids].astype(np.float64)
        annotations.append(
            dict(
                id=number,
                image_id=person.image,
                category_id=1,
                keypoints=keypoints.reshape(-1).tolist(),
                num_keypoints=int(np.count_nonzero(keypoints[:, 2] > 0)),
                area=person.area,
                bbox=list(person.bbox),
                score=person.score,
                iscrowd=int(person.ignore),
            )
        )
    coco = COCO()
    images = sorted({person.image for person in persons})
    coco.dataset = dict(
        images=[dict(id=image) for image in images],
        categories=[dict(id=1, name='person')],
        annotations=annotations,
    )
    coco.createIndex()
    return coco
