"""What can hardly be meant in a keypoint file and its metainfo."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .doubts import meta_names, mirror_doubts, order_doubts

_LARGEST_SIGMA = 0.5
_CHUNK = 1024  # persons at once, to bound the memory


def table_doubts(meta: Mapping[str, Any]) -> Iterator[str]:
    """Doubts about parsed keypoint metainfo."""
    names = meta_names(meta)
    partners = [names[index] for index in meta['flip_indices']]
    yield from mirror_doubts(names, dict(zip(names, partners, strict=True)))
    sigmas = zip(names, meta['sigmas'], strict=True)
    if large := [name for name, sigma in sigmas if sigma > _LARGEST_SIGMA]:
        yield (
            f'the sigmas of {large} are above {_LARGEST_SIGMA}: with those OKS takes '
            "any place for right (COCO's largest is 0.107)"
        )


def category_doubts(
    categories: Sequence[Mapping[str, Any]], meta: Mapping[str, Any]
) -> Iterator[str]:
    """Keypoints that a file lists in another order than the metainfo."""
    for category in categories:
        listed = category.get('keypoints')
        if isinstance(listed, list) and all(isinstance(name, str) for name in listed):
            for doubt in order_doubts(meta_names(meta), listed):
                yield f'keypoints of category {category.get("name")!r}: {doubt}'


def box_doubts(
    ids: Sequence[Hashable], boxes: np.ndarray, sizes: np.ndarray
) -> Iterator[str]:
    """Normalized boxes, and corners instead of width and height.

    Args:
        ids: of the annotations.
        boxes: (N, 4), xywh as in the file.
        sizes: (N, 2), width and height of their images.
    """
    start, extent = boxes[:, :2], boxes[:, 2:]
    yield from _some(
        (boxes <= 1).all(1) & (sizes > 2).all(1),
        ids,
        'a box within 0..1; multiply normalized boxes by width and height',
    )
    # As corners they fit, as width and height most of them do not.
    leaves = (start + extent > sizes + 1).any(1)
    corners = leaves & (extent > start).all(1) & (extent <= sizes + 1).all(1)
    if 2 * corners.sum() > len(corners):
        yield from _some(
            corners,
            ids,
            'a box that leaves its image, but fits as x1, y1, x2, y2; boxes must be x, '
            'y, width, height',
        )


def point_doubts(
    ids: Sequence[Hashable], keypoints: Sequence[np.ndarray], sizes: np.ndarray
) -> Iterator[str]:
    """Normalized keypoints, and persons whose points lie outside their image.

    Args:
        ids: of the annotations.
        keypoints: N of (K, 3), x, y, v.
        sizes: (N, 2), width and height of their images.
    """
    within, outside = [np.zeros(0, bool)], [np.zeros(0, bool)]
    for start in range(0, len(ids), _CHUNK):
        part = np.stack(keypoints[start : start + _CHUNK])
        labeled, places = part[..., 2] > 0, part[..., :2]
        limits = sizes[start : start + _CHUNK, None]
        inside = ((places >= 0) & (places < limits)).all(-1)
        tiny = ((places >= 0) & (places <= 1)).all(-1)
        within.append((labeled.sum(1) > 1) & (tiny | ~labeled).all(1))
        outside.append(2 * (labeled & ~inside).sum(1) > labeled.sum(1))
    yield from _some(
        np.concatenate(within),
        ids,
        'all keypoints within 0..1; multiply normalized keypoints by width and height',
    )
    yield from _some(
        np.concatenate(outside),
        ids,
        'most keypoints outside the image; are its width and height in the file those '
        'of the picture?',
    )


def _some(which: np.ndarray, ids: Sequence[Hashable], what: str) -> Iterator[str]:
    if which.any():
        first = ids[int(which.argmax())]
        yield f'{which.sum()} of {len(ids)} have {what}; the first is {first!r}'
