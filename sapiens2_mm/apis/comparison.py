"""Several models on one data set: metrics, time, memory, and their pictures."""

import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.logging import print_log
from PIL import Image, ImageDraw, ImageFont
from prettytable import PrettyTable

from sapiens2_mm.datasets.io.image import read_image
from sapiens2_mm.engine import launch
from sapiens2_mm.engine.test_data import use_data

from .model_zoo import find_model

_MIB = 2**20
_ROW_HEIGHT = 384  # pixels of a picture in the comparison
_TITLE_HEIGHT = 32


@dataclass(frozen=True)
class Trial:
    """What a model did on a data set.

    Args:
        name: of the checkpoint's folder and file.
        metrics: of the data set's evaluator.
        milliseconds: per sample (a picture, for pose a person), preparation on the
            device and decoding included, loading not.
        memory: most MiB above those of the process without the model: of the GPU, or
            of the process without a GPU.
        parameters: of the model, in millions.
        pictures: (H, W, 3) uint8 RGB, drawn predictions of the first samples.
        paths: of their input pictures.
    """

    name: str
    metrics: dict[str, float]
    milliseconds: float
    memory: float
    parameters: float
    pictures: list[np.ndarray]
    paths: list[str]


def compare_models(
    models: Sequence[Sequence[str]],
    data: str,
    out_dir: str,
    num_pictures: int = 4,
    cfg_options: dict[str, Any] | None = None,
) -> list[Trial]:
    """Test models one after the other, each in a process of its own.

    Writes ``comparison.png``, the input beside the prediction of each model, and the
    logs of the tests, a folder for each model.

    Args:
        models: short names of published models, or config and checkpoint.
        data: config of the data, see ``use_data``.
        out_dir: folder of the results.
        num_pictures: rows of ``comparison.png``.
        cfg_options: settings that override those of all models, once the data are
            theirs.

    Raises:
        ValueError: for a model that is neither; see also ``use_data``.
    """
    files = [_files(model) for model in models]
    for path in (data, *(config for config, _ in files)):
        launch.load_config(path)  # a wrong one shows before the first test
    trials = []
    for number, (config, checkpoint) in enumerate(files):
        work_dir = str(Path(out_dir) / f'model_{number}')
        with ProcessPoolExecutor(1, get_context('spawn')) as pool:
            arguments = (config, checkpoint, data, work_dir, num_pictures, cfg_options)
            trials.append(pool.submit(run_trial, *arguments).result())
    path = Path(out_dir) / 'comparison.png'
    side_by_side(trials).save(path)
    print_log(f'wrote {path}', logger='current')
    return trials


def _files(model: Sequence[str]) -> tuple[str, str]:
    if len(model) == 1 and not model[0].endswith('.py'):
        info = find_model(model[0])
        model = [str(info.config), info.weights]
    if len(model) != 2 or model[1] is None:
        raise ValueError(
            'a model is the name of a published one, or its config and checkpoint, got '
            f'{" ".join(map(str, model))}'
        )
    return model[0], model[1]


def run_trial(
    config: str,
    checkpoint: str,
    data: str,
    work_dir: str,
    num_pictures: int = 4,
    cfg_options: dict[str, Any] | None = None,
) -> Trial:
    """Test one model in this process, see ``compare_models``."""
    cfg = launch.load_config(config, work_dir=work_dir)
    use_data(cfg, launch.load_config(data))
    cfg.merge_from_dict(cfg_options or {})
    cfg.load_from = checkpoint
    idle = _peak_memory()
    runner = launch.build_runner(cfg)
    step = _TimedStep(runner.model.test_step, num_pictures)
    runner.model.test_step = step
    metrics = runner.test()
    pictures = []
    for sample in step.samples:
        image = np.ascontiguousarray(read_image(sample.img_path)[..., ::-1])
        runner.visualizer.add_datasample(
            Path(sample.img_path).stem, image, data_sample=sample, draw_gt=False
        )
        pictures.append(runner.visualizer.get_image())
    return Trial(
        name='/'.join(Path(checkpoint).parts[-2:]),
        metrics={name: float(value) for name, value in metrics.items()},
        milliseconds=step.milliseconds(),
        memory=_peak_memory() - idle,
        parameters=sum(p.numel() for p in runner.model.parameters()) / 1e6,
        pictures=pictures,
        paths=[sample.img_path for sample in step.samples],
    )


class _TimedStep:
    """A model's ``test_step`` that counts its time and keeps the first samples."""

    def __init__(self, step: Any, num_samples: int) -> None:
        self.step = step
        self.num_samples = num_samples
        self.samples: list[Any] = []
        self.times: list[tuple[float, int]] = []

    def __call__(self, batch: Any) -> list[Any]:
        _wait_for_device()
        start = time.perf_counter()
        samples = self.step(batch)
        _wait_for_device()
        self.times.append((time.perf_counter() - start, len(samples)))
        self.samples += samples[: self.num_samples - len(self.samples)]
        return samples

    def milliseconds(self) -> float:
        """Per sample; the first batch warms up, unless it is the only one."""
        times = self.times[1:] or self.times
        return 1000 * sum(t for t, _ in times) / sum(number for _, number in times)


def _wait_for_device() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _peak_memory() -> float:
    """MiB so far."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / _MIB
    unit = 1 if sys.platform == 'darwin' else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / _MIB


def table_of(trials: Sequence[Trial]) -> PrettyTable:
    """A row for each figure, a column for each model."""
    table = PrettyTable(['', *(_title(i, trial) for i, trial in enumerate(trials))])
    table.align = 'r'
    table.align[''] = 'l'
    names = dict.fromkeys(name for trial in trials for name in trial.metrics)
    for name in names:
        values = [trial.metrics.get(name) for trial in trials]
        row = ['-' if value is None else f'{value:.4g}' for value in values]
        table.add_row([name, *row])
    for label, name in (
        ('ms per sample', 'milliseconds'),
        ('peak memory, MiB', 'memory'),
        ('parameters, M', 'parameters'),
    ):
        row = [f'{getattr(trial, name):.4g}' for trial in trials]
        table.add_row([label, *row])
    return table


def _title(number: int, trial: Trial) -> str:
    return f'{number}: {trial.name}'


def side_by_side(trials: Sequence[Trial]) -> Image.Image:
    """A row for each input: the picture, and what each model made of it."""
    rows = [
        [read_image(path)[..., ::-1], *(trial.pictures[number] for trial in trials)]
        for number, path in enumerate(trials[0].paths)
    ]
    columns = [
        [_to_height(image) for image in column] for column in zip(*rows, strict=True)
    ]
    titles = ['input', *(_title(i, trial) for i, trial in enumerate(trials))]
    widths = [max(image.shape[1] for image in column) for column in columns]
    size = sum(widths), _TITLE_HEIGHT + _ROW_HEIGHT * len(rows)
    canvas = Image.new('RGB', size, 'white')
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(14)
    left = 0
    for title, column, width in zip(titles, columns, widths, strict=True):
        while draw.textlength(title, font) > width - 8:
            title = title[:-1]
        draw.text((left + 4, 8), title, 'black', font)
        for number, image in enumerate(column):
            top = _TITLE_HEIGHT + number * _ROW_HEIGHT
            canvas.paste(Image.fromarray(image), (left, top))
        left += width
    return canvas


def _to_height(image: np.ndarray) -> np.ndarray:
    scale = _ROW_HEIGHT / image.shape[0]
    size = max(1, round(image.shape[1] * scale)), _ROW_HEIGHT
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    return cv2.resize(np.ascontiguousarray(image), size, interpolation=method)
