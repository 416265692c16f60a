"""Common keypoint sets (COCO, OpenPose, ...) and how they come from the 308.

``keypoint_sets.json`` says for each point of each set whether it is one of the 308,
derived from some of them, or absent.

Source: names, orders, mirror partners and links of COCO, COCO-WholeBody and Halpe-26
are those of mmpose's ``configs/_base_/datasets``; those of OpenPose are BODY_25, its 70
face and 21 hand points (Cao et al., arXiv 1812.08008, and the output format of its
documentation); the joints and their tree are SMPL's (Loper et al. 2015). Which points
correspond is ours.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from .humans308 import METAINFO, keypoint_ids

_TABLE: dict[str, Any] = json.loads(
    Path(__file__).with_name('keypoint_sets.json').read_text()
)
KEYPOINT_SETS = tuple(_TABLE['sets'])
_GROUPS = ('face', 'left_hand', 'right_hand')
_NO_COLOR = [128, 128, 128]


@dataclass(frozen=True)
class SetPoint:
    """A point of a keypoint set.

    Args:
        name: in the set.
        swap: its name in a mirrored picture.
        kind: ``'exact'``, the same point of the body; ``'derived'``, the mean of its
            sources, or one that stands in; ``'absent'``.
        sources: names among the 308.
    """

    name: str
    swap: str
    kind: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class KeypointSet:
    """A named list of points.

    Args:
        name: of ``KEYPOINT_SETS``.
        points: in the order of the set.
        fields: of the set's own files -> positions of the points that they hold.
        metainfo: names, mirror partners, links, colors and groups in mmpose's parsed
            form, for drawing; without sigmas and weights. A point has the color of its
            first source.
    """

    name: str
    points: tuple[SetPoint, ...]
    fields: dict[str, range]
    metainfo: dict[str, Any]


@cache
def keypoint_set(name: str) -> KeypointSet:
    """A set of ``KEYPOINT_SETS``.

    Raises:
        ValueError: for another name, or if its table names a point that is none of the
            308.
    """
    if name not in KEYPOINT_SETS:
        raise ValueError(f'keypoints must be one of {[*KEYPOINT_SETS]}, got {name!r}')
    entry = _TABLE['sets'][name]
    points: list[SetPoint] = []
    fields: dict[str, range] = {}
    groups: dict[str, list[int]] = {}
    for field, parts in entry['fields'].items():
        start = len(points)
        for part in parts:
            for own_name, swap, kind, *sources in _TABLE['parts'][part]:
                for group in _GROUPS:
                    if part.startswith(group):
                        groups.setdefault(group, []).append(len(points))
                points.append(SetPoint(own_name, swap, kind, tuple(sources)))
        fields[field] = range(start, len(points))
    links = [link for part in entry['links'] for link in _links(part)]
    metainfo = _metainfo(name, points, links)
    metainfo['keypoint_groups'] = groups
    return KeypointSet(name, tuple(points), fields, metainfo)


def _links(part: str) -> Iterator[tuple[str, str]]:
    for chain in _TABLE['links'][part]:
        yield from pairwise(chain.split())


def _metainfo(
    name: str, points: list[SetPoint], links: list[tuple[str, str]]
) -> dict[str, Any]:
    ids = {point.name: number for number, point in enumerate(points)}
    colors = [_color(point) for point in points]
    ends = [(ids[start], ids[end]) for start, end in links]
    return dict(
        dataset_name=name,
        num_keypoints=len(points),
        keypoint_id2name=dict(enumerate(ids)),
        keypoint_name2id=ids,
        flip_indices=[ids[point.swap] for point in points],
        keypoint_colors=colors,
        num_skeleton_links=len(links),
        skeleton_links=ends,
        skeleton_link_colors=[colors[end] for _, end in ends],
    )


def _color(point: SetPoint) -> list[int]:
    colors = [
        METAINFO['keypoint_info'][index]['color']
        for index in keypoint_ids(point.sources)
    ]
    return colors[0] if colors else _NO_COLOR
