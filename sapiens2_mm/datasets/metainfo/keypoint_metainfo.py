"""Keypoint metainfo in mmpose's form: its faults, and its groups."""

from collections.abc import Iterator
from typing import Any

import numpy as np


def check_keypoint_metainfo(metainfo: dict[str, Any]) -> None:
    """Refuse faulty metainfo (``keypoint_info``, ``sigmas``, ...).

    Args:
        metainfo: raw, not parsed by mmpose; ``skeleton_info`` and ``joint_weights``
            may be missing.

    Raises:
        ValueError: if a part is missing, the keys are not 0 to K - 1, the lengths
            differ, a sigma is not positive, a flip partner or link end is unknown,
            or the flip partner of a partner is another keypoint.
    """
    fault = next(_faults(metainfo), None)
    if fault is not None:
        raise ValueError(f'keypoint metainfo {metainfo.get("dataset_name")}: {fault}')


def _faults(metainfo: dict[str, Any]) -> Iterator[str]:
    """What is wrong, the first fault first; later ones may follow from it."""
    if missing := {'dataset_name', 'keypoint_info', 'sigmas'} - set(metainfo):
        yield f'{sorted(missing)} missing'
    for part in ('keypoint_info', 'skeleton_info'):
        entries = metainfo.get(part, {})
        if not isinstance(entries, dict) or not all(
            isinstance(entry, dict) for entry in entries.values()
        ):
            yield f'{part} must be a dict from numbers to dicts'
    keypoints = metainfo['keypoint_info']
    if list(keypoints) != list(range(len(keypoints))):
        yield (
            f'the keys of keypoint_info must be the numbers 0 to {len(keypoints) - 1} '
            f'in order, got {list(keypoints)}'
        )
    for part in ('sigmas', 'joint_weights'):
        values = np.atleast_1d(metainfo.get(part, np.ones(len(keypoints))))
        if values.dtype.kind not in 'fiu' or not (values >= 0).all():
            yield f'{part} must be numbers of at least 0, got {metainfo[part]!r:.80}'
        if values.shape != (len(keypoints),):
            yield f'{len(keypoints)} keypoints, {len(values)} {part}'
    if not np.all(metainfo['sigmas']):
        yield 'every sigma must be > 0'
    names = [info.get('name') for info in keypoints.values()]
    if not all(isinstance(name, str) for name in names):
        yield 'every keypoint needs a name'
    if len(set(names)) != len(names):
        yield 'two keypoints share a name'
    swaps = [info.get('swap', '') for info in keypoints.values()]
    partner = {
        name: name if swap == '' else swap
        for name, swap in zip(names, swaps, strict=True)
    }
    for name, swap in partner.items():
        if partner.get(swap) != name:
            yield (
                f'{name} swaps with {swap}, but {swap} swaps with '
                f'{partner.get(swap, "nothing, it is no keypoint")}; flip partners '
                'must name each other'
            )
    for index, info in metainfo.get('skeleton_info', {}).items():
        link = info.get('link')
        if not isinstance(link, list | tuple) or len(link) != 2:
            yield f'link {index} must be two keypoint names, got {link!r}'
        elif unknown := [end for end in link if end not in names]:
            yield f'the link {tuple(link)} names {unknown}, which are not keypoints'


def keypoint_groups(metainfo: dict[str, Any]) -> dict[str, list[int]]:
    """Ids of each ``group`` that occurs; empty if none does."""
    groups: dict[str, list[int]] = {}
    for index, info in metainfo['keypoint_info'].items():
        if info.get('group'):
            groups.setdefault(info['group'], []).append(index)
    return groups
