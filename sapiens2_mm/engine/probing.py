"""Compare encoders by light decoders trained on their frozen features."""

import copy
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.runner import Runner
from mmengine.runner.checkpoint import CheckpointLoader

from sapiens2_mm.models.backbones.arch import parse_arch
from sapiens2_mm.models.selfsup.export import save_backbone

# Task -> metric of the evaluator -> (name in the table, factor).
# The first metric of a task is the one that best_row looks at.
METRICS: dict[str, dict[str, tuple[str, float]]] = {
    'pose': {
        'coco/AP': ('pose AP', 1),
        'coco/AR': ('pose AR', 1),
        'PCK': ('pose PCK@0.05', 1),
    },
    'seg': {'mIoU': ('seg mIoU', 1), 'mAcc': ('seg mAcc', 1)},
    'normal': {
        'normal/normal_mae': ('normal deg', 1),
        'normal/within_22_5_deg': ('normal <22.5', 1),
    },
    'pointmap': {'pointmap/l2_mean': ('pointmap L2', 1)},
    'albedo': {'albedo/mae': ('albedo MAE x100', 100)},
}
ERRORS = ('normal deg', 'pointmap L2', 'albedo MAE x100')  # smaller is better
TASKS = tuple(METRICS)
RANDOM = 'random'


def encoders_of(checkpoint: str, folder: Path) -> dict[str, str | None]:
    """What to probe of a checkpoint.

    Args:
        checkpoint: of a pretraining run, which holds a student and perhaps a teacher;
            or any file that a backbone's ``init_cfg`` can load; or ``'random'`` for
            an encoder that was not trained.
        folder: where encoders of a run are written.

    Returns:
        Row name -> checkpoint for ``init_cfg``, None for none.
    """
    if checkpoint == RANDOM:
        return {RANDOM: None}
    weights = CheckpointLoader.load_checkpoint(checkpoint, map_location='cpu')
    weights = weights.get('state_dict', weights)
    found: dict[str, str | None] = {}
    if any(key.startswith('neck.mask_token') for key in weights):
        has_teacher = any(key.startswith('teacher.') for key in weights)
        for which in ('teacher', 'student') if has_teacher else ('student',):
            path = folder / f'{which}.safetensors'
            save_backbone(weights, path, which)
            found[which] = str(path)
        return found
    return {Path(checkpoint).stem: checkpoint}


def checkpoints_of(work_dir: str | Path) -> list[Path]:
    """The numbered checkpoints of a run, in the order of their numbers.

    Raises:
        FileNotFoundError: if there is none.
    """
    numbered = {}
    for path in Path(work_dir).glob('*.pth'):
        if match := re.fullmatch(r'(?:iter|epoch)_(\d+)', path.stem):
            numbered[path] = int(match[1])
    if not numbered:
        raise FileNotFoundError(
            f'checkpoints_of: {work_dir} holds no iter_*.pth or epoch_*.pth; give the '
            'work folder of a run'
        )
    return sorted(numbered, key=numbered.__getitem__)


def probe_config(
    path: str | Path,
    checkpoint: str | None,
    work_dir: Path,
    arch: str | None = None,
    data_root: str | None = None,
    cfg_options: dict[str, Any] | None = None,
) -> Config:
    """The config of one probe.

    Args:
        path: one of ``configs/probe``.
        checkpoint: for the backbone, or None.
        work_dir: of the run.
        arch: size of the backbone, if it is not the config's.
        data_root: of all its data sets, if it is not the config's.
        cfg_options: more changes.
    """
    cfg = Config.fromfile(path)
    cfg.work_dir = str(work_dir)
    if data_root is not None:
        for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
            cfg[name].dataset.data_root = data_root
    if arch is not None:
        sizes = parse_arch(arch)
        cfg.model.backbone.arch = arch
        cfg.model.backbone.frozen_stages = sizes.num_layers
        cfg.model.neck.in_channels = sizes.embed_dims
    if cfg_options:
        cfg.merge_from_dict(copy.deepcopy(cfg_options))
    if checkpoint is not None:
        cfg.model.backbone.init_cfg = dict(type='Pretrained', checkpoint=checkpoint)
    return cfg


def run_probe(cfg: Config, task: str) -> dict[str, float]:
    """Train and test one probe; the metrics of the table by their names there.

    Raises:
        ValueError: if the encoder is not frozen as a whole.
    """
    cfg.train_cfg.val_begin = cfg.train_cfg.max_iters + 1  # tested once, below
    runner = Runner.from_cfg(cfg)
    backbone = runner.model.backbone
    trainable = [name for name, p in backbone.named_parameters() if p.requires_grad]
    if trainable:
        raise ValueError(
            f'run_probe: {len(trainable)} parameters of the encoder are trainable '
            f'({trainable[0]}, ...); set frozen_stages to its number of blocks, '
            f'{backbone.num_layers}'
        )
    runner.train()
    metrics = runner.val_loop.run()
    return {
        title: float(metrics[name]) * factor
        for name, (title, factor) in METRICS[task].items()
    }


def best_row(rows: dict[str, dict[str, float]]) -> str:
    """The row with the smallest mean rank over the first metric of every task."""
    ranks = dict.fromkeys(rows, 0)
    for metrics in METRICS.values():
        title = next(iter(metrics.values()))[0]
        values = {name: row[title] for name, row in rows.items() if title in row}
        sign = 1 if title in ERRORS else -1
        for name, value in values.items():
            ranks[name] += sum(sign * other < sign * value for other in values.values())
    return min(ranks, key=ranks.__getitem__)


def format_table(rows: dict[str, dict[str, float]], best: str | None = None) -> str:
    """A Markdown table, one line per encoder; a dash where a probe was not run.

    Args:
        rows: name -> metrics by their titles.
        best: name of the row to mark.
    """
    titles = [title for task in METRICS.values() for title, _ in task.values()]
    used = [title for title in titles if any(title in row for row in rows.values())]
    lines = [['encoder', *used], ['---'] * (len(used) + 1)]
    for name, row in rows.items():
        shown = f'{name} (best)' if name == best else name
        lines.append([shown, *(_number(row.get(title)) for title in used)])
    return '\n'.join('| ' + ' | '.join(line) + ' |' for line in lines)


def _number(value: float | None) -> str:
    return '-' if value is None else f'{value:.4g}'


def find_configs(
    folder: str | Path, model: str, tasks: Sequence[str]
) -> dict[str, Path]:
    """The probe config of a model name, ``'0.4b'`` or ``'tiny'``, for each task.

    Raises:
        FileNotFoundError: if there is none.
    """
    found = {}
    for task in tasks:
        pattern = f'sapiens2-{model}_probe-{task}_*.py'
        matches = sorted(Path(folder).glob(pattern))
        if not matches:
            raise FileNotFoundError(
                f'find_configs: no config {pattern} in {folder}; give another '
                '--configs folder or --model'
            )
        found[task] = matches[0]
    return found
