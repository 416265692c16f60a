"""The 308 keypoints of Sapiens2: names, flip partners, sigmas, links, colors.

``METAINFO`` has mmpose's form with one addition, a ``group`` per keypoint, by which
the metric reports body, foot, face and hands apart and the visualizer chooses its
line widths. An own table of another length may use or omit it.

Source: keypoint order, names, swaps, sigmas and links are those of the official
configs; the colors are ours.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

Array = TypeVar('Array', np.ndarray, Tensor)

# The 17 keypoints of COCO in COCO's order; all of them are among the 308.
COCO17_NAMES = (
    'nose',
    'left_eye',
    'right_eye',
    'left_ear',
    'right_ear',
    'left_shoulder',
    'right_shoulder',
    'left_elbow',
    'right_elbow',
    'left_wrist',
    'right_wrist',
    'left_hip',
    'right_hip',
    'left_knee',
    'right_knee',
    'left_ankle',
    'right_ankle',
)

# Official annotations carry 344 points: these 308 and 36 teeth at ids 220 to 255.
NUM_SOURCE_KEYPOINTS = 344
TOOTH_IDS = tuple(range(220, 256))


def _load_table() -> dict[str, Any]:
    table = json.loads(Path(__file__).with_name('humans308.json').read_text())
    colors = table['colors']
    keypoints = {
        index: dict(
            name=name, swap=swap, group=group, type=half_body, color=colors[part]
        )
        for index, (name, swap, group, half_body, part, _) in enumerate(
            table['keypoints']
        )
    }
    links = {
        index: dict(link=(start, end), color=colors[part])
        for index, (start, end, part) in enumerate(table['links'])
    }
    return dict(
        dataset_name='humans308',
        keypoint_info=keypoints,
        skeleton_info=links,
        joint_weights=[1.0] * len(keypoints),
        sigmas=[row[-1] for row in table['keypoints']],
    )


METAINFO = _load_table()
KEYPOINT_NAMES = tuple(info['name'] for info in METAINFO['keypoint_info'].values())


def keypoint_ids(
    names: Sequence[str], table: Sequence[str] = KEYPOINT_NAMES
) -> list[int]:
    """Positions of keypoint names in a table.

    Args:
        names: the names to look up, in the wanted order.
        table: all names in index order; the 308 by default.

    Raises:
        ValueError: if a name is not in the table; lists the unknown names.
    """
    index = {name: position for position, name in enumerate(table)}
    unknown = [name for name in names if name not in index]
    if unknown:
        raise ValueError(
            f'keypoint_ids: {unknown} are not among the {len(index)} keypoint names '
            'of the table; check the spelling'
        )
    return [index[name] for name in names]


def select_keypoints(
    keypoints: Array,
    names: Sequence[str] = COCO17_NAMES,
    table: Sequence[str] = KEYPOINT_NAMES,
) -> Array:
    """Pick keypoints by name; by default the 17 of COCO out of the 308.

    Args:
        keypoints: (..., K, D) coordinates, K names in ``table``.
        names: wanted names in the wanted order.
        table: all names in index order.

    Returns:
        (..., len(names), D), of the type of ``keypoints``.

    Raises:
        ValueError: if K is not the length of the table, or a name is unknown.
    """
    if keypoints.ndim < 2 or keypoints.shape[-2] != len(table):
        raise ValueError(
            f'select_keypoints: expected keypoints of shape (..., {len(table)}, D), '
            f'one per name of the table, got {tuple(keypoints.shape)}'
        )
    return keypoints[..., keypoint_ids(names, table), :]
