"""Body parts of a folder of pictures, written to files."""

from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from sapiens2_mm.datasets.io.image import read_image
from sapiens2_mm.datasets.io.label_image import write_label_image
from sapiens2_mm.registry import VISUALIZERS

from .pictures import process_pictures
from .seg import inference_seg


def segment_to_folder(
    model: nn.Module, source: str | Path, out_dir: str | Path
) -> dict[str, str]:
    """Segment a picture or the pictures of a folder.

    For each picture ``out_dir`` gets ``NAME.png`` (overlay and legend),
    ``NAME_seg.npy`` (the label map, as the official demo writes it) and
    ``NAME_seg.png`` (the same as a palette image). ``predictions.json`` lists the
    pixels of each class that occurs; see ``process_pictures`` for the rest.

    Args:
        model: from ``init_model``.
        source: a picture, or a folder of them (not its subfolders).
        out_dir: is made if needed.

    Returns:
        Pictures that could not be read -> why. The others are processed all the same.

    Raises:
        FileNotFoundError: if ``source`` does not exist or is a folder without pictures.
    """
    meta = model.dataset_meta
    classes = meta['classes']
    visualizer = VISUALIZERS.build(
        {**model.cfg.visualizer, 'name': f'parts of {source} in {out_dir}'}
    )
    visualizer.dataset_meta = meta
    dtype = np.uint8 if len(classes) <= 256 else np.uint16

    def predict(path: Path, out: Path) -> dict[str, Any]:
        (result,) = inference_seg(model, path)
        visualizer.add_datasample(
            out.name,
            np.ascontiguousarray(read_image(path)[..., ::-1]),
            result,
            out_file=f'{out}.png',
        )
        labels = result.pred_sem_seg.data[0].numpy().astype(dtype)
        np.save(f'{out}_seg.npy', labels)
        write_label_image(f'{out}_seg.png', labels, meta.get('palette'))
        pixels = np.bincount(labels.ravel(), minlength=len(classes))
        return dict(
            height=labels.shape[0],
            width=labels.shape[1],
            label_map=f'{out.name}_seg.npy',
            pixels={n: int(c) for n, c in zip(classes, pixels, strict=True) if c},
        )

    return process_pictures(source, out_dir, predict, dict(classes=list(classes)))
