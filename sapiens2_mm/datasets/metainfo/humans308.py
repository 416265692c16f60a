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
from typing import Any

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


def keypoint_ids(names: Sequence[str]) -> list[int]:
    """Ids of keypoint names, in the order of ``names``.

    Raises:
        ValueError: if a name is none of the 308; lists the unknown names.
    """
    index = {name: position for position, name in enumerate(KEYPOINT_NAMES)}
    unknown = [name for name in names if name not in index]
    if unknown:
        raise ValueError(
            f'keypoint_ids: {unknown} are not among the {len(index)} keypoint names '
            'of the table; check the spelling'
        )
    return [index[name] for name in names]
