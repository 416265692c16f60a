"""Read every sample of a dataset and report what is wrong; for all tasks."""

import copy
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.utils import ProgressBar
from prettytable import PrettyTable
from torch.utils.data import DataLoader, Dataset, IterableDataset

from sapiens2_mm.registry import DATASETS

from .sample_checks import WARNINGS, Finding, Inspection, inspect_sample

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

    def __init__(self, dataset: Any, context: dict[str, Any]) -> None:
        self.dataset = dataset
        self.context = context

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Inspection:
        return inspect_sample(self.dataset.get_data_info(index), self.context)


def _first(batch: list[Inspection]) -> Inspection:
    return batch[0]


def check_dataset(
    dataset: Any,
    workers: int = 0,
    palette: Sequence[Sequence[int]] | None = None,
    progress: bool = False,
) -> Report:
    """Read all files of a dataset.

    Args:
        dataset: any mmengine dataset; its pipeline is not used.
        workers: processes; 0 reads in this one.
        palette: RGB colors, if masks are color files.
        progress: draw a progress bar on the error stream.

    Raises:
        TypeError: for a dataset without a length.
    """
    if isinstance(dataset, IterableDataset):
        raise TypeError(f'check_dataset: {type(dataset).__name__} is a stream')
    report = Report(len(dataset), dict(dataset.metainfo))
    loader = DataLoader(
        _Inspections(dataset, dict(palette=palette)),
        batch_size=1,
        num_workers=workers,
        collate_fn=_first,
    )
    bar = ProgressBar(len(dataset), file=sys.stderr) if progress else None
    for inspection in loader:
        report.add(inspection)
        if bar is not None:
            bar.update()
    if bar is not None:
        sys.stderr.write('\n')
    return report


def check_config(
    cfg: Config, split: str = 'train', workers: int = 0, progress: bool = False
) -> Report:
    """Check the dataset of a config.

    Args:
        cfg: of any task.
        split: ``'train'``, ``'val'`` or ``'test'``.
        workers: see ``check_dataset``.
        progress: see ``check_dataset``.

    Raises:
        ValueError: if the config has no such dataset.
    """
    loader = cfg.get(f'{split}_dataloader')
    if not loader or 'dataset' not in loader:
        raise ValueError(f'the config has no {split}_dataloader.dataset')
    init_default_scope(cfg.get('default_scope', 'mmengine'))
    dataset_cfg = copy.deepcopy(loader.dataset)
    palette = _take_pipelines(dataset_cfg)
    dataset = DATASETS.build(dataset_cfg)
    return check_dataset(dataset, workers, palette, progress)


def _take_pipelines(node: Any) -> Any:
    """Empty all pipelines of a dataset config; the palette of a mask loader, if any."""
    palette = None
    if isinstance(node, dict):
        for step in node.get('pipeline', []):
            if str(step.get('type')).endswith('LoadSegAnnotations'):
                palette = step.get('palette')
        if 'pipeline' in node:
            node['pipeline'] = []
        children = [v for k, v in node.items() if k in ('dataset', 'datasets')]
    else:
        children = list(node) if isinstance(node, list | tuple) else []
    for child in children:
        palette = _take_pipelines(child) or palette
    return palette
