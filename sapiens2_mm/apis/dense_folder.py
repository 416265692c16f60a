"""Predictions of a folder of pictures, written to files."""

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.logging import print_log
from mmengine.utils import track_iter_progress
from torch import nn

from sapiens2_mm.datasets.dense_folder_dataset import IMAGE_SUFFIXES
from sapiens2_mm.datasets.transforms.load_image import read_image
from sapiens2_mm.registry import VISUALIZERS
from sapiens2_mm.structures import DenseDataSample
from sapiens2_mm.visualization import save_point_cloud

from .dense import inference_dense


def predict_to_folder(
    model: nn.Module, source: str | Path, out_dir: str | Path, ply: bool = False
) -> dict[str, str]:
    """Predict a picture or the pictures of a folder.

    For each picture ``out_dir`` gets ``NAME.png`` (picture and prediction side by side)
    and ``NAME.npz`` (the ``pred_*`` maps, float32, as in ``DenseDataSample``). A second
    picture of one name gets a number.

    Args:
        model: from ``init_model``.
        source: a picture, or a folder of them (not its subfolders).
        out_dir: is made if needed.
        ply: write ``NAME.ply`` too, the coloured points of a pointmap model.

    Returns:
        Pictures that could not be read -> why. The others are processed all the same.

    Raises:
        FileNotFoundError: if ``source`` does not exist or is a folder without pictures.
        ValueError: if ``ply`` is asked of a model that predicts no points.
    """
    source, out_dir = Path(source), Path(out_dir)
    paths = [source]
    if source.is_dir():
        paths = [p for p in source.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES]
    if not paths or not source.exists():
        raise FileNotFoundError(
            f'no picture at {source}; expected a file, or a folder of files ending in '
            f'{IMAGE_SUFFIXES}'
        )
    out_dir.mkdir(parents=True, exist_ok=True)
    kind = model.cfg.visualizer.type
    visualizer = VISUALIZERS.build(dict(type=kind, name=f'predictions of {source}'))
    names: Counter[str] = Counter()
    failures = {}
    for path in track_iter_progress(sorted(paths)):
        try:
            (sample,) = inference_dense(model, path)
        except ValueError as err:
            failures[str(path)] = str(err)
            continue
        names[path.stem] += 1
        number = names[path.stem]
        name = path.stem if number == 1 else f'{path.stem}_{number - 1}'
        _write(sample, path, out_dir / name, visualizer, ply)
    for message in failures.values():
        print_log(message, logger='current', level=logging.ERROR)
    return failures


def _write(
    sample: DenseDataSample, path: Path, out: Path, visualizer: Any, ply: bool
) -> None:
    maps = {k: v.numpy() for k, v in sample.items() if k.startswith('pred_')}
    if ply and 'pred_pointmap' not in maps:
        raise ValueError(
            'point clouds need a pointmap model; this one predicts '
            f'{sorted(maps)}; leave --ply out'
        )
    image = np.ascontiguousarray(read_image(path)[..., ::-1])
    visualizer.add_datasample(
        out.name, image, sample, draw_gt=False, out_file=f'{out}.png'
    )
    np.savez_compressed(f'{out}.npz', **maps)
    if ply:
        save_point_cloud(f'{out}.ply', maps['pred_pointmap'], image)
