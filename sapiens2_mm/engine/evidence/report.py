"""Table, curves and numbers of a comparison."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Picture
from torch import Tensor

from .experiment import NO_INPUT, RANDOM, RAW, ROWS, RunResult, Settings
from .intervals import Estimate, estimate
from .pretraining import ARMS
from .probe_tasks import TASKS

Runs = dict[tuple[str, int], RunResult]
Estimates = dict[str, dict[str, dict[str, dict[str, Estimate]]]]
# What is subtracted in the table of differences
DIFFERENCES = (
    ('joint', 'reconstruction'),
    ('joint', 'joint, contrast off'),
    ('joint, contrast off', 'reconstruction'),
)


def _sums(
    runs: Runs, row: str, share: float, fraction: float, task: str
) -> list[Tensor]:
    """Sums of each test image, one tensor per seed; empty if that was not probed."""
    key = share, fraction
    return [
        result.sums[row][key][task]
        for result in runs.values()
        if key in result.sums.get(row, {})
    ]


def last_share(row: str) -> float:
    """Of the training, for the table: what is not trained is at 0."""
    return 0 if row in (NO_INPUT, RAW, RANDOM) else 1


def estimates(runs: Runs, settings: Settings) -> Estimates:
    """Row -> share of training -> fraction of labels -> task -> estimate."""
    found: Estimates = {}
    for row in ROWS:
        for share in settings.shares:
            for fraction in settings.label_fractions:
                for name, task in TASKS.items():
                    sums = _sums(runs, row, share, fraction, name)
                    if sums:
                        shares = found.setdefault(row, {}).setdefault(f'{share:g}', {})
                        shares.setdefault(f'{fraction:g}', {})[name] = estimate(
                            task.metric, sums
                        )
    return found


def differences(
    runs: Runs, settings: Settings
) -> dict[str, dict[str, dict[str, Estimate]]]:
    """Fraction of labels -> 'one - other' -> task -> difference at the end."""
    found: dict[str, dict[str, dict[str, Estimate]]] = {}
    for fraction in settings.label_fractions:
        pairs = found.setdefault(f'{fraction:g}', {})
        for one, other in DIFFERENCES:
            pairs[f'{one} - {other}'] = {
                name: estimate(
                    task.metric,
                    _sums(runs, one, 1, fraction, name),
                    _sums(runs, other, 1, fraction, name),
                )
                for name, task in TASKS.items()
            }
    return found


def training_of(runs: Runs) -> dict[str, list[dict[str, float]]]:
    """Arm -> what ``pretrain`` returned, by seed."""
    return {
        arm: [result.training for (name, _), result in runs.items() if name == arm]
        for arm in ARMS
    }


def format_tables(
    found: Estimates, compared: dict[str, Any], training: dict[str, Any]
) -> str:
    """Markdown: metrics at the end by part of the labels, differences, trainings."""
    parts = []
    for fraction, pairs in compared.items():
        rows = {row: found[row][f'{last_share(row):g}'][fraction] for row in found}
        titles = [f'{100 * float(fraction):g} % of labels', *_titles()]
        parts.append(_table(titles, {**rows, **pairs}))
    titles = ['training', 'steps', 'processor s', *_logged(training)]
    lines = [_line(titles), _line(['---'] * len(titles))]
    for arm, results in training.items():
        means = {
            key: sum(result[key] for result in results) / len(results)
            for key in results[0]
        }
        cells = [
            f'{means[key]:.3g}' if key in means else '-' for key in _logged(training)
        ]
        steps = ', '.join(f'{result["steps"]:g}' for result in results)
        lines.append(_line([arm, steps, f'{means["seconds"]:.1f}', *cells]))
    return '\n\n'.join([*parts, '\n'.join(lines)])


def _titles() -> list[str]:
    arrows = {True: 'up', False: 'down'}
    return [f'{t.title} ({arrows[t.larger_is_better]})' for t in TASKS.values()]


def _logged(training: dict[str, Any]) -> list[str]:
    keys = dict.fromkeys(key for runs in training.values() for key in runs[0])
    return [key for key in keys if key not in ('steps', 'seconds')]


def _table(titles: list[str], rows: dict[str, dict[str, Estimate]]) -> str:
    lines = [_line(titles), _line(['---'] * len(titles))]
    for row, tasks in rows.items():
        cells = [_cell(tasks[name]) for name in TASKS]
        lines.append(_line([row, *cells]))
    return '\n'.join(lines)


def _line(cells: list[str]) -> str:
    return f'| {" | ".join(cells)} |'


def _cell(value: Estimate) -> str:
    return f'{value.mean:.3g} [{value.low:.3g}, {value.high:.3g}]'


def draw_curves(found: Estimates, settings: Settings, path: Path) -> None:
    """A picture: metrics against the share of the training, with their intervals."""
    fractions = [f'{fraction:g}' for fraction in settings.label_fractions]
    picture = Picture(
        figsize=(4 * len(TASKS), 3.2 * len(fractions)), layout='constrained'
    )
    grid = picture.subplots(len(fractions), len(TASKS), squeeze=False)
    for fraction, axes in zip(fractions, grid, strict=True):
        for (name, task), axis in zip(TASKS.items(), axes, strict=True):
            level = found[RAW]['0'][fraction][name].mean
            axis.axhline(level, color='gray', linestyle=':', label=RAW)
            for arm in ARMS:
                shares = {'0': found[RANDOM]['0'], **found[arm]}
                points = [shares[share][fraction][name] for share in shares]
                x = [100 * float(share) for share in shares]
                axis.plot(x, [point.mean for point in points], marker='o', label=arm)
                low, high = ([getattr(p, k) for p in points] for k in ('low', 'high'))
                axis.fill_between(x, low, high, alpha=0.15)
            better = 'larger' if task.larger_is_better else 'smaller'
            axis.set_title(f'{task.title}\n{better} is better')
            axis.set_xlabel('% of the processor time of pretraining')
        axes[0].set_ylabel(f'{100 * float(fraction):g} % of labels')
    grid[0][0].legend()
    picture.savefig(path, dpi=70)
