"""Planned memory of a GPU over the number of GPUs."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from .memory import Memory
from .plans import MODES, Planner


def draw_memory(
    planner: Planner, num_gpus: Sequence[int], batch_size: int, limit: float, path: str
) -> None:
    """Write a PNG: all ways on the left, the parts of FSDP2 with ``full`` on the right.

    Args:
        planner: of a config.
        num_gpus: places on the axis.
        batch_size: images of one GPU.
        limit: bytes of a GPU that may be used.
        path: of the file.
    """
    from matplotlib.figure import Figure

    figure = Figure((11, 4.5), layout='constrained')
    left, right = figure.subplots(1, 2)
    places = np.arange(len(num_gpus))
    for mode in MODES:
        totals = [planner.memory(n, n, mode, batch_size).total for n in num_gpus]
        left.plot(places, np.array(totals) / 1e9, marker='o', label=f'fsdp2, {mode}')
    ddp = planner.memory(num_gpus[-1], 1, 'full', batch_size).total / 1e9
    left.axhline(ddp, color='tab:gray', label='ddp, full')
    bottom = np.zeros(len(num_gpus))
    parts = [planner.memory(n, n, 'full', batch_size) for n in num_gpus]
    for field in dataclasses.fields(Memory):
        values = np.array([getattr(part, field.name) for part in parts]) / 1e9
        right.bar(places, values, bottom=bottom, label=field.name)
        bottom += values
    for axes, title in (
        (left, 'by sharding and recomputation'),
        (right, 'fsdp2, full'),
    ):
        axes.axhline(limit / 1e9, color='black', linestyle=':', label='usable')
        axes.set_xticks(places, [str(n) for n in num_gpus])
        axes.set(xlabel='GPUs', ylabel='GB per GPU', title=title)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8, loc='center right')
    figure.suptitle(f'Planned memory, {batch_size} images per GPU')
    figure.savefig(path, dpi=120)
