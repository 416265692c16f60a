"""Load every sample of a dataset and report what is wrong; for all tasks."""

import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.utils import ProgressBar
from prettytable import PrettyTable
from torch.utils.data import DataLoader, Dataset, IterableDataset

from sapiens2_mm.registry import DATASETS

from ..io.image import read_image
from ..metainfo.of_config import config_metainfo
from ..transforms.loading import LoadImage
from .doubts import meta_names, order_doubts
from .sample_checks import (
    DOUBT,
    UNREADABLE,
    WARNINGS,
    Finding,
    Inspection,
    inspect_sample,
)

_MAX_LISTED = 20


@dataclass
class Report:
    """Result of a check.

    Attributes:
        num_samples: samples read.
        metainfo: of the dataset.
        findings: all faults, in the order of the samples.
        counts: histograms, summed over all samples.
    """

    num_samples: int
    metainfo: dict[str, Any]
    findings: list[Finding] = field(default_factory=list)
    counts: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def has_errors(self) -> bool:
        """Whether a fault was found that would stop or spoil a run."""
        return any(finding.kind not in WARNINGS for finding in self.findings)

    def add(self, inspection: Inspection) -> None:
        """Include one sample."""
        self.findings += inspection.findings
        for name, counts in inspection.counts.items():
            self.counts[name] = self.counts.get(name, 0) + counts.astype(np.int64)

    def absent(self) -> list[str]:
        """Names of the classes or keypoints that no sample has."""
        for names, counts in self._histograms():
            return [n for n, c in zip(names, counts, strict=False) if c == 0]
        return []

    def _histograms(self) -> list[tuple[list[str], np.ndarray]]:
        meta = self.metainfo
        found = []
        if 'pixels' in self.counts:
            found.append((list(meta['classes']), self.counts['pixels']))
        if 'keypoints' in self.counts:
            ids = meta.get('keypoint_id2name', {})
            counts = self.counts['keypoints']
            names = [ids.get(i, str(i)) for i in range(len(counts))]
            found.append((names, counts))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types."""
        return dict(
            num_samples=self.num_samples,
            findings=[finding._asdict() for finding in self.findings],
            counts={name: counts.tolist() for name, counts in self.counts.items()},
            absent=self.absent(),
        )

    def to_text(self, max_listed: int = _MAX_LISTED) -> str:
        """The report to read; at most ``max_listed`` faults of each kind."""
        lines = [f'{self.num_samples} samples read']
        if 'pixels' in self.counts:
            lines.append(self._class_counts())
        if 'keypoints' in self.counts:
            counts = self.counts['keypoints']
            lines.append(
                f'labeled keypoints per sample: {counts.sum() / self.num_samples:.1f} '
                f'of {len(counts)}'
            )
        if absent := self.absent():
            lines.append(f'never occur: {", ".join(absent)}')
            if len(absent) == len(self.metainfo.get('classes', ())) - 1:
                lines.append(
                    'only one class occurs; ignored pixels do not count: if the '
                    'foreground is stored as the ignored value, set label_map of the '
                    'dataset'
                )
        kinds = dict.fromkeys(finding.kind for finding in self.findings)
        for kind in kinds:
            found = [f for f in self.findings if f.kind == kind]
            level = 'warning' if kind in WARNINGS else 'ERROR'
            lines.append(f'{level}: {kind}: {len(found)}')
            lines += [f'  {f.path}: {f.message}' for f in found[:max_listed]]
            if len(found) > max_listed:
                lines.append(f'  ... and {len(found) - max_listed} more')
        if not self.findings:
            lines.append('no faults found')
        return '\n'.join(lines)

    def _class_counts(self) -> str:
        """Pixels and images of each class."""
        pixels, images = self.counts['pixels'], self.counts['images']
        names = [*self.metainfo['classes'], '(ignored)']
        table = PrettyTable(['id', 'class', 'pixels', 'share', 'images'])
        table.align = 'r'
        table.align['class'] = 'l'
        total = max(1, pixels.sum())
        for index, name in enumerate(names):
            share = f'{100 * pixels[index] / total:.2f} %'
            label = index if index + 1 < len(names) else ''
            table.add_row([label, name, pixels[index], share, images[index]])
        return table.get_string()


class _Inspections(Dataset):
    """The inspection of each sample of a dataset."""

    def __init__(self, dataset: Any, steps: Sequence[Callable]) -> None:
        self.dataset = dataset
        self.steps = steps

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Inspection:
        return inspect_sample(self.dataset.get_data_info(index), self.steps)


def _first(batch: list[Inspection]) -> Inspection:
    return batch[0]


def check_dataset(dataset: Any, workers: int = 0, progress: bool = False) -> Report:
    """Load all files of a dataset.

    The steps of its pipeline that load (``Load...``) are run on each sample, and each
    photo that another step pastes is read once. The parts of a wrapper, such as
    ``RepeatDataset`` or ``ConcatDataset``, are read once each.

    Args:
        dataset: any mmengine dataset.
        workers: processes; 0 reads in this one.
        progress: draw a progress bar on the error stream.

    Raises:
        TypeError: for a dataset without a length.
    """
    parts = list(_parts(dataset))
    report = Report(sum(len(part) for part, _ in parts), dict(dataset.metainfo))
    bar = ProgressBar(report.num_samples, file=sys.stderr) if progress else None
    for part, steps in parts:
        doubts = getattr(part, 'doubts', ())
        report.findings += [
            Finding(DOUBT, type(part).__name__, doubt) for doubt in doubts
        ]
        report.findings += _unreadable_photos(steps)
        loading = [step for step in steps if type(step).__name__.startswith('Load')]
        loader = DataLoader(
            _Inspections(part, loading or [LoadImage()]),
            batch_size=1,
            num_workers=workers,
            collate_fn=_first,
        )
        for inspection in loader:
            report.add(inspection)
            if bar is not None:
                bar.update()
    if bar is not None:
        sys.stderr.write('\n')
    return report


def _parts(dataset: Any, outer: Sequence = ()) -> Iterator[tuple[Any, list[Any]]]:
    """The datasets that wrappers are made of, each with all steps of its samples."""
    if isinstance(dataset, IterableDataset):
        raise TypeError(f'check_dataset: {type(dataset).__name__} is a stream')
    steps = [*_steps(getattr(dataset, 'pipeline', None)), *outer]
    inner = getattr(dataset, 'datasets', None) or [getattr(dataset, 'dataset', None)]
    if inner == [None]:
        yield dataset, steps
    else:
        for part in inner:
            yield from _parts(part, steps)


def _steps(pipeline: Any) -> Iterator[Any]:
    """All steps of a pipeline, also those inside others."""
    for step in getattr(pipeline, 'transforms', None) or ():
        if callable(step):
            yield step
        yield from _steps(step)


def _unreadable_photos(steps: Sequence[Any]) -> Iterator[Finding]:
    """Of those that steps such as ``RandomBackground`` paste into a picture."""
    for path in dict.fromkeys(path for s in steps for path in getattr(s, 'paths', ())):
        try:
            read_image(path)
        except (OSError, ValueError) as err:
            yield Finding(UNREADABLE, path, str(err))


def check_config(
    cfg: Config, split: str = 'train', workers: int = 0, progress: bool = False
) -> Report:
    """Check the dataset of a config.

    Args:
        cfg: of any task.
        split: ``'train'``, ``'val'`` or ``'test'``; the names of its classes or
            keypoints are compared with those of the others.
        workers: see ``check_dataset``.
        progress: see ``check_dataset``.

    Raises:
        ValueError: if the config has no such dataset.
    """
    loader = cfg.get(f'{split}_dataloader')
    if not loader or 'dataset' not in loader:
        raise ValueError(f'the config has no {split}_dataloader.dataset')
    init_default_scope(cfg.get('default_scope', 'mmengine'))
    report = check_dataset(
        DATASETS.build(copy.deepcopy(loader.dataset)), workers, progress
    )
    for other in ('train', 'val', 'test'):
        meta = config_metainfo((cfg.get(f'{other}_dataloader') or {}).get('dataset'))
        for doubt in order_doubts(meta_names(report.metainfo), meta_names(meta)):
            report.findings.append(Finding(DOUBT, f'metainfo of {other}', doubt))
    return report
