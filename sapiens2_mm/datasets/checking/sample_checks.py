"""What is wrong with one sample, found by running the steps that load it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..transforms.loading import SizeMismatch, UnknownLabel

UNREADABLE = 'unreadable file'
SIZE = 'size mismatch'
LABEL = 'label out of range'
EMPTY = 'empty annotation'
BOX = 'box outside the image'
NO_VALUE = 'masked pixels without a value'
DOUBT = 'doubtful annotations'
# Of these only the last kinds may be meant.
WARNINGS = (EMPTY, NO_VALUE, DOUBT)

Results = dict[str, Any]


class Finding(NamedTuple):
    """A fault: its kind, the file it is in, and what was found."""

    kind: str
    path: str
    message: str


class Inspection(NamedTuple):
    """Faults of one sample, and its share of the histograms (name -> counts)."""

    findings: list[Finding]
    counts: dict[str, np.ndarray]


def inspect_sample(
    sample: Results, steps: Sequence[Callable[[Results], Results]]
) -> Inspection:
    """Load a sample and look at what came.

    Args:
        sample: as ``get_data_info`` of a dataset gives it.
        steps: of a pipeline, those that load; one with a method ``parts`` is run part
            by part.
    """
    findings: list[Finding] = []
    results = dict(sample)
    size_known = True
    for part in _parts(steps):
        valid = np.count_nonzero(results.get('gt_mask', 0))
        try:
            results = part(results) or results
        except Exception as err:  # whatever a step raises stops a run
            if size_known or not isinstance(err, SizeMismatch):
                findings.append(_fault(err, sample))
        if results.get('img') is None:  # go on to the other files
            results.update(img=np.zeros((1, 1, 3), np.uint8))
            results.update(img_shape=(1, 1), ori_shape=(1, 1))
            size_known = False
        lost = valid - np.count_nonzero(results.get('gt_mask', 0))
        field = getattr(part, 'args', None)  # of a partial: the field it loads
        if lost and field:
            path = str(sample.get(f'{field[0]}_path'))
            findings.append(Finding(NO_VALUE, path, f'{lost} of {valid} pixels'))
    loaded = not findings
    counts: dict[str, np.ndarray] = {}
    looks = (_look_at_labels, _look_at_mask, _look_at_normals, _look_at_keypoints)
    for look in looks:
        findings += look(results, counts)
    if not loaded:  # a box is in no image of known size
        findings = [finding for finding in findings if finding.kind != BOX]
    return Inspection(findings, counts)


def _parts(steps: Sequence[Any]) -> Iterator[Callable[[Results], Any]]:
    for step in steps:
        yield from step.parts() if hasattr(step, 'parts') else [step]


def _fault(err: Exception, sample: Results) -> Finding:
    """The finding of an error; its file is the one named first."""
    kinds = {SizeMismatch: SIZE, UnknownLabel: LABEL}
    message = str(err) or repr(err)
    paths = [
        str(path)
        for key, path in sample.items()
        if key.endswith('_path') and str(path) in message
    ]
    path = min(paths, key=message.index, default=str(sample.get('img_path')))
    return Finding(kinds.get(type(err), UNREADABLE), path, message)


def _look_at_labels(results: Results, counts: dict) -> Iterator[Finding]:
    """Pixels and images per class, ignored ones last."""
    labels = results.get('gt_seg_map')
    if labels is None:
        return
    ignored = labels == results['ignore_index']
    pixels = np.bincount(labels[~ignored], minlength=results['num_classes'])
    if not pixels[1:].any():
        what = 'only background' if pixels[0] else 'every pixel is ignored'
        yield Finding(EMPTY, results['seg_map_path'], what)
    counts['pixels'] = np.append(pixels, ignored.sum())
    counts['images'] = counts['pixels'] > 0


def _look_at_mask(results: Results, counts: dict) -> Iterator[Finding]:
    if not np.any(results.get('gt_mask', True)):
        path = results.get('mask_path') or results['img_path']
        yield Finding(EMPTY, path, 'no valid pixel')


def _look_at_normals(results: Results, counts: dict) -> Iterator[Finding]:
    """No camera sees surfaces that face away from it."""
    if 'gt_normal' not in results:
        return
    away = results['gt_normal'][results['gt_mask'], 2] > 0
    if 2 * away.sum() > away.size:
        yield Finding(
            DOUBT,
            results['normal_path'],
            f'{100 * away.mean():.0f} % of the normals point away from the camera '
            '(z > 0); X is right, Y down and Z forward here: set normal_signs of '
            'DenseFolderDataset, (1, -1, -1) if Y is up and Z to the camera',
        )


def _look_at_keypoints(results: Results, counts: dict) -> Iterator[Finding]:
    """Boxes inside the image; counts of labeled points."""
    if 'keypoints' not in results:
        return
    visible = np.asarray(results['keypoints_visible']).reshape(
        -1, np.shape(results['keypoints'])[-2]
    )
    counts['keypoints'] = (visible > 0).sum(0)
    name = f'{results.get("img_path")} (annotation {results.get("id")})'
    if not (visible > 0).any():
        yield Finding(EMPTY, name, 'no labeled keypoint')
    boxes = np.reshape(results.get('bbox', ()), (-1, 4))
    size = results['ori_shape']
    if (boxes[:, :2] < 0).any() or (boxes[:, 2:] > size[::-1]).any():
        text = f'box {boxes.tolist()} (xyxy) in an image of {size} (h, w)'
        yield Finding(BOX, name, text)
