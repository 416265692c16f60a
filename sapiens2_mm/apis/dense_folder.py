"""Dense predictions of a folder of pictures, written to files."""

from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from sapiens2_mm.datasets.io.image import read_image
from sapiens2_mm.registry import VISUALIZERS
from sapiens2_mm.visualization import save_point_cloud

from .dense import inference_dense
from .pictures import process_pictures


def predict_to_folder(
    model: nn.Module, source: str | Path, out_dir: str | Path, ply: bool = False
) -> dict[str, str]:
    """Predict a picture or the pictures of a folder.

    For each picture ``out_dir`` gets ``NAME.png`` (picture and prediction side by side)
    and ``NAME.npz`` (the ``pred_*`` maps, float32, as in ``DenseDataSample``); see
    ``process_pictures`` for the rest.

    Args:
        model: from ``init_model``.
        source: a picture, or a folder of them (not its subfolders).
        out_dir: is made if needed.
        ply: write ``NAME.ply`` too, the colored points of a pointmap model.

    Returns:
        Pictures that could not be read -> why. The others are processed all the same.

    Raises:
        FileNotFoundError: if ``source`` does not exist or is a folder without pictures.
        TypeError: if ``ply`` is asked of a model that predicts no points.
    """
    kind = model.cfg.visualizer.type
    visualizer = VISUALIZERS.build(
        dict(type=kind, name=f'predictions of {source} in {out_dir}')
    )

    def predict(path: Path, out: Path) -> dict[str, Any]:
        (sample,) = inference_dense(model, path)
        maps = {k: v.numpy() for k, v in sample.items() if k.startswith('pred_')}
        if ply and 'pred_pointmap' not in maps:
            raise TypeError(
                'point clouds need a pointmap model; this one predicts '
                f'{sorted(maps)}; leave --ply out'
            )
        image = np.ascontiguousarray(read_image(path)[..., ::-1])
        visualizer.add_datasample(
            out.name, image, sample, draw_gt=False, out_file=f'{out}.png'
        )
        np.savez_compressed(f'{out}.npz', **maps)
        record = dict(
            height=image.shape[0], width=image.shape[1], maps=f'{out.name}.npz'
        )
        if ply:
            save_point_cloud(f'{out}.ply', maps['pred_pointmap'], image)
            record['points'] = f'{out.name}.ply'
        return record

    return process_pictures(source, out_dir, predict)
