"""Checks of a keypoint table before anything is trained or drawn with it."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def check_keypoint_table(metainfo: dict[str, Any]) -> None:
    """Check a table in mmpose's form (``keypoint_info``, ``sigmas``, ...).

    Args:
        metainfo: raw table; ``skeleton_info`` and ``joint_weights`` may be missing.

    Raises:
        ValueError: if a part is missing, the keys are not 0 to K - 1, the lengths
            differ, a sigma is not positive, a mirror partner or link end is unknown,
            or the mirror partner of a partner is another keypoint.
    """
    name = metainfo.get('dataset_name')
    missing = {'dataset_name', 'keypoint_info', 'sigmas'} - set(metainfo)
    if missing:
        raise ValueError(f'keypoint table {name}: {sorted(missing)} missing')
    for part in ('keypoint_info', 'skeleton_info'):
        entries = metainfo.get(part, {})
        if not isinstance(entries, dict) or not all(
            isinstance(entry, dict) for entry in entries.values()
        ):
            raise ValueError(
                f'keypoint table {name}: {part} must be a dict from numbers to dicts'
            )
    keypoints = list(metainfo['keypoint_info'].values())
    num_keypoints = len(keypoints)
    if list(metainfo['keypoint_info']) != list(range(num_keypoints)):
        raise ValueError(
            f'keypoint table {name}: the keys of keypoint_info must be the numbers 0 '
            f'to {num_keypoints - 1} in order, got {list(metainfo["keypoint_info"])}'
        )
    sigmas = _numbers(metainfo['sigmas'], f'keypoint table {name}: sigmas')
    weights = _numbers(
        metainfo.get('joint_weights', [1.0] * num_keypoints),
        f'keypoint table {name}: joint_weights',
    )
    if not num_keypoints == len(sigmas) == len(weights):
        raise ValueError(
            f'keypoint table {name}: {num_keypoints} keypoints, {len(sigmas)} sigmas '
            f'and {len(weights)} joint_weights; give one of each per keypoint'
        )
    if any(not sigma > 0 for sigma in sigmas):
        raise ValueError(f'keypoint table {name}: every sigma must be > 0')
    names = [info.get('name') for info in keypoints]
    if not all(isinstance(keypoint, str) for keypoint in names):
        raise ValueError(f'keypoint table {name}: every keypoint needs a name')
    if len(set(names)) != num_keypoints:
        raise ValueError(f'keypoint table {name}: two keypoints share a name')
    partner = {
        info['name']: info['name'] if info.get('swap', '') == '' else info['swap']
        for info in keypoints
    }
    for keypoint, swap in partner.items():
        if partner.get(swap) != keypoint:
            raise ValueError(
                f'keypoint table {name}: {keypoint} swaps with {swap}, but {swap} '
                f'swaps with {partner.get(swap, "nothing, it is not in the table")}; '
                'mirror partners must name each other'
            )
    for index, info in metainfo.get('skeleton_info', {}).items():
        link = info.get('link')
        if not isinstance(link, list | tuple) or len(link) != 2:
            raise ValueError(
                f'keypoint table {name}: link {index} must be two keypoint names, got '
                f'{link!r}'
            )
        unknown = [end for end in link if end not in names]
        if unknown:
            raise ValueError(
                f'keypoint table {name}: the link {tuple(link)} names {unknown}, which '
                'are not keypoints of the table'
            )


def _numbers(values: Any, where: str) -> Sequence[float]:
    if not isinstance(values, Sequence | np.ndarray) or not all(
        isinstance(value, int | float | np.number) for value in values
    ):
        raise ValueError(f'{where}: expected a list of numbers, got {values!r:.80}')
    return values


def keypoint_groups(metainfo: dict[str, Any]) -> dict[str, list[int]]:
    """Ids of each ``group`` that occurs in the table; empty if none does."""
    groups: dict[str, list[int]] = {}
    for index, info in metainfo['keypoint_info'].items():
        if info.get('group'):
            groups.setdefault(info['group'], []).append(index)
    return groups
