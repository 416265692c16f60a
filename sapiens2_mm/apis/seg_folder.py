"""Body parts of a folder of pictures, written to files."""

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import mmengine
import numpy as np
from mmengine.logging import print_log
from mmengine.utils import track_iter_progress
from torch import nn

from sapiens2_mm.datasets.label_image import write_label_image
from sapiens2_mm.datasets.transforms.load_image import read_image
from sapiens2_mm.registry import VISUALIZERS

from .seg import inference_seg

IMAGE_SUFFIXES = ('.jpg', '.jpeg', '.png', '.bmp', '.tif', '.tiff', '.webp')


def segment_to_folder(
    model: nn.Module, source: str | Path, out_dir: str | Path
) -> dict[str, str]:
    """Segment a picture or the pictures of a folder.

    For each picture ``out_dir`` gets ``NAME.png`` (overlay and legend),
    ``NAME_seg.npy`` (the label map, as the official demo writes it) and
    ``NAME_seg.png`` (the same as a palette image). A second picture of one name gets a
    number. ``predictions.json`` lists, for each picture, its files, its size and the
    pixels of each class that occurs.

    Args:
        model: from ``init_model``.
        source: a picture, or a folder of them (not its subfolders).
        out_dir: is made if needed.

    Returns:
        Pictures that could not be read -> why. The others are processed all the same.

    Raises:
        FileNotFoundError: if ``source`` does not exist or is a folder without pictures.
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
    visualizer = VISUALIZERS.build(
        {**model.cfg.visualizer, 'name': f'parts of {source} in {out_dir}'}
    )
    visualizer.dataset_meta = model.dataset_meta
    dtype = np.uint8 if len(model.dataset_meta['classes']) <= 256 else np.uint16
    names: Counter[str] = Counter()
    records, failures = [], {}
    for path in track_iter_progress(sorted(paths)):
        try:
            (result,) = inference_seg(model, path)
        except ValueError as err:
            failures[str(path)] = str(err)
            continue
        number = names[path.stem]
        names[path.stem] += 1
        name = f'{path.stem}_{number}' if number else path.stem
        visualizer.add_datasample(
            name,
            np.ascontiguousarray(read_image(path)[..., ::-1]),
            result,
            out_file=str(out_dir / f'{name}.png'),
        )
        labels = result.pred_sem_seg.data[0].numpy().astype(dtype)
        records.append(_write(labels, path, out_dir, name, model.dataset_meta))
    mmengine.mkdir_or_exist(out_dir)
    mmengine.dump(records, out_dir / 'predictions.json', indent=1, ensure_ascii=False)
    for message in failures.values():
        print_log(message, logger='current', level=logging.ERROR)
    return failures


def _write(
    labels: np.ndarray, path: Path, out_dir: Path, name: str, meta: dict
) -> dict[str, Any]:
    """Write the label map twice; what ``predictions.json`` says of it."""
    np.save(out_dir / f'{name}_seg.npy', labels)
    write_label_image(out_dir / f'{name}_seg.png', labels, meta.get('palette'))
    pixels = np.bincount(labels.ravel(), minlength=len(meta['classes']))
    return dict(
        image=str(path),
        label_map=f'{name}_seg.npy',
        height=labels.shape[0],
        width=labels.shape[1],
        pixels={n: int(c) for n, c in zip(meta['classes'], pixels, strict=True) if c},
    )
