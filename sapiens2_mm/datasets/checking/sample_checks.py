"""What can be wrong with one sample, for each kind of annotation.

A check reads the files of a sample as the dataset lists them, before any pipeline;
what it raises is reported as an unreadable file. To cover another annotation, add its
key in the sample to ``CHECKS``.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..io.array_file import read_array
from ..io.image import read_image
from ..io.label_image import read_label_image
from ..seg.label_map import UNKNOWN, label_lookup

UNREADABLE = 'unreadable file'
SIZE = 'size mismatch'
LABEL = 'label out of range'
EMPTY = 'empty annotation'
BOX = 'box outside the image'
NOT_FINITE = 'values that are not finite'
# Of these only the last kinds may be meant.
WARNINGS = (EMPTY, NOT_FINITE)


class Finding(NamedTuple):
    """A fault: its kind, the file it is in, and what was found."""

    kind: str
    path: str
    message: str


class Inspection(NamedTuple):
    """Faults of one sample, and its share of the histograms (name -> counts)."""

    findings: list[Finding]
    counts: dict[str, np.ndarray]


Size = tuple[int, int] | None
Check = Callable[[dict[str, Any], Size, dict[str, Any]], Inspection]


def inspect_sample(sample: dict[str, Any], context: dict[str, Any]) -> Inspection:
    """All checks that fit a sample.

    Args:
        sample: as ``get_data_info`` of a dataset gives it.
        context: settings that checks need: ``palette`` of color masks.
    """
    findings: list[Finding] = []
    counts: dict[str, np.ndarray] = {}
    size = None
    for key in ('img_path', *CHECKS):
        if sample.get(key) is None:
            continue
        try:
            if key == 'img_path':
                size = read_image(sample[key]).shape[:2]
            else:
                result = CHECKS[key](sample, size, context)
                findings += result.findings
                counts.update(result.counts)
        except (OSError, ValueError) as err:
            findings.append(Finding(UNREADABLE, sample[key], str(err)))
    return Inspection(findings, counts)


def _check_mask(sample: dict, size: Size, context: dict) -> Inspection:
    """Labels after all mapping; counts of pixels and of images per class."""
    path = sample['seg_map_path']
    num_classes, ignore_index = sample['num_classes'], sample['ignore_index']
    values = read_label_image(path, context.get('palette'))
    findings = _compare_sizes(sample, path, values.shape, size)
    lookup = label_lookup(
        num_classes, sample['label_map'], sample['reduce_zero_label'], ignore_index
    )
    labels = lookup[values]
    unknown = labels == UNKNOWN
    if unknown.any():
        found, pixels = np.unique(values[unknown], return_counts=True)
        text = ', '.join(f'{v} ({n} px)' for v, n in zip(found, pixels, strict=True))
        findings.append(
            Finding(
                LABEL,
                path,
                f'pixel values {text}; expected one of {num_classes} classes or '
                f'{ignore_index} (ignored)',
            )
        )
    known = labels[(labels != ignore_index) & ~unknown]
    pixels = np.bincount(known, minlength=num_classes)
    if not pixels[1:].any() and not unknown.any():
        what = 'only background' if pixels[0] else 'every pixel is ignored'
        findings.append(Finding(EMPTY, path, what))
    ignored = np.count_nonzero(labels == ignore_index)
    return Inspection(
        findings,
        {
            'pixels': np.append(pixels, ignored),
            'images': np.append(pixels, ignored) > 0,
        },
    )


def _check_keypoints(sample: dict, size: Size, context: dict) -> Inspection:
    """Boxes inside the image; counts of labeled points."""
    visible = np.asarray(sample['keypoints_visible']).reshape(
        -1, np.shape(sample['keypoints'])[-2]
    )
    name = f'{sample.get("img_path")} (annotation {sample.get("id")})'
    findings = []
    if not (visible > 0).any():
        findings.append(Finding(EMPTY, name, 'no labeled keypoint'))
    box = sample.get('bbox')
    if size is not None and box is not None:
        x1, y1, x2, y2 = np.asarray(box).reshape(-1, 4).T
        height, width = size
        if (
            (x1 < 0).any()
            or (y1 < 0).any()
            or (x2 > width).any()
            or (y2 > height).any()
        ):
            text = f'box {np.asarray(box).tolist()} (xyxy) in an image of {size} (h, w)'
            findings.append(Finding(BOX, name, text))
    return Inspection(findings, {'keypoints': (visible > 0).sum(0)})


def _map_check(name: str) -> Check:
    """A check of the file ``<name>_path`` of dense annotations."""

    def check(sample: dict, size: Size, context: dict) -> Inspection:
        path = sample[f'{name}_path']
        values = read_array(path, name)
        findings = _compare_sizes(sample, path, values.shape[:2], size)
        if name == 'mask' and not (values > 0).any():
            findings.append(Finding(EMPTY, path, 'no valid pixel'))
        wrong = np.count_nonzero(~np.isfinite(values.astype(np.float32)))
        if wrong:
            text = f'{wrong} of {values.size} values'
            findings.append(Finding(NOT_FINITE, path, text))
        return Inspection(findings, {})

    return check


def _compare_sizes(
    sample: dict, path: str, shape: tuple[int, ...], size: Size
) -> list[Finding]:
    if size is None or tuple(shape) == tuple(size):
        return []
    text = f'{tuple(shape)}, but {Path(sample["img_path"]).name} has {tuple(size)}'
    return [Finding(SIZE, path, text)]


# Key in the sample -> check.
CHECKS: dict[str, Check] = {
    'seg_map_path': _check_mask,
    'keypoints': _check_keypoints,
    **{
        f'{name}_path': _map_check(name)
        for name in ('mask', 'normal', 'depth', 'albedo')
    },
}
