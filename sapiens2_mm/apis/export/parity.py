"""Exported files against the eager model."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .graph import Graph
from .metadata import KEY

Run = Callable[[Tensor], dict[str, Tensor]]


@dataclass(frozen=True)
class Parity:
    """One input, run by the file and by the eager model.

    Args:
        shape: of the images.
        difference: output -> largest absolute difference; of class ids, the share of
            pixels that differ.
        seconds: of the file.
        eager_seconds: of the eager model.
    """

    shape: tuple[int, ...]
    difference: dict[str, float]
    seconds: float
    eager_seconds: float


def check_parity(
    path: str | Path,
    graph: Graph,
    shapes: Iterable[tuple[int, int, int]],
    repeats: int = 1,
) -> list[Parity]:
    """Run a file and the model it was made of on the same random images.

    Args:
        path: of ``export_model``; an ONNX file runs on the CPU.
        graph: of the model.
        shapes: (batch size, height, width) of the images.
        repeats: the fastest run counts.
    """
    run, _ = load_exported(path)
    rows = []
    for batch_size, *size in shapes:
        images = graph.example(size, batch_size)
        outputs, seconds = _timed(run, images, repeats)
        expected, eager_seconds = _timed(graph, images, repeats)
        difference = {
            name: _difference(outputs[name].cpu(), value.cpu())
            for name, value in expected.items()
        }
        rows.append(Parity(tuple(images.shape), difference, seconds, eager_seconds))
    return rows


def load_exported(path: str | Path) -> tuple[Run, dict[str, Any]]:
    """A function from images to named outputs, and the metadata of a file."""
    if Path(path).suffix != '.onnx':
        extra = {KEY: ''}
        program = torch.export.load(path, extra_files=extra)
        return program.module(), json.loads(extra[KEY])
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()  # a fair comparison
    session = onnxruntime.InferenceSession(
        path, options, providers=['CPUExecutionProvider']
    )
    names = [output.name for output in session.get_outputs()]

    def run(images: Tensor) -> dict[str, Tensor]:
        outputs = session.run(None, dict(images=images.cpu().numpy()))
        return dict(zip(names, map(torch.from_numpy, outputs), strict=True))

    meta = session.get_modelmeta().custom_metadata_map
    return run, json.loads(meta[KEY])


@torch.no_grad()
def _timed(run: Run, images: Tensor, repeats: int) -> tuple[dict[str, Tensor], float]:
    best = float('inf')
    for _ in range(repeats):
        start = time.perf_counter()
        outputs = run(images)
        best = min(best, time.perf_counter() - start)
    return outputs, best


def _difference(one: Tensor, other: Tensor) -> float:
    if not other.is_floating_point():
        return (one != other).double().mean().item()
    return (one - other).abs().max().item()  # NaN stays NaN


def parity_table(rows: Iterable[Parity]) -> str:
    """A line for each input: largest difference of each output, and times."""
    return ''.join(
        f'batch {row.shape[0]}: '
        + ', '.join(f'{name} {value:.1e}' for name, value in row.difference.items())
        + f'; {row.seconds:.3f} s, eager {row.eager_seconds:.3f} s\n'
        for row in rows
    )
