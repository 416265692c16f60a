"""Keypoints of the people in a folder of pictures, written to files."""

from pathlib import Path
from typing import Any

import mmcv
import numpy as np
from mmengine.structures import BaseDataElement
from mmpose.structures import merge_data_samples
from torch import nn

from sapiens2_mm.datasets.io.image import read_image
from sapiens2_mm.datasets.io.json_file import Id, check_record, check_records, load_json
from sapiens2_mm.registry import VISUALIZERS

from .pictures import process_pictures
from .pose import inference_pose


def keypoints_to_folder(
    model: nn.Module,
    source: str | Path,
    out_dir: str | Path,
    boxes: str | Path | None = None,
    keypoint_thr: float = 0.3,
) -> dict[str, str]:
    """Predict the people of a picture or of the pictures of a folder.

    For each picture ``out_dir`` gets ``NAME.png``, boxes and keypoints drawn on it.
    ``predictions.json`` lists for each picture its size, where its boxes came from,
    and its ``instances``: box, keypoints and scores; see ``process_pictures``. A
    picture without a box has no instances.

    Args:
        model: from ``init_model``.
        source: a picture, or a folder of them (not its subfolders).
        out_dir: is made if needed.
        boxes: COCO-style JSON whose annotations hold the boxes (xywh) of pictures of
            the same file name; crowds are left out. None takes each whole picture as
            one person.
        keypoint_thr: keypoints of a lower score are not drawn.

    Returns:
        Pictures that could not be read -> why. The others are processed all the same.

    Raises:
        FileNotFoundError: if ``source`` does not exist or is a folder without pictures.
        ValueError: if the file of boxes is not in COCO's form.
    """
    known = None if boxes is None else _read_boxes(boxes)
    meta = model.dataset_meta
    visualizer = VISUALIZERS.build(
        {**model.cfg.visualizer, 'name': f'keypoints of {source} in {out_dir}'}
    )
    visualizer.set_dataset_meta(meta)

    def predict(path: Path, out: Path) -> dict[str, Any]:
        image = read_image(path)
        height, width = image.shape[:2]
        if known is None:
            people, form = [[0, 0, width, height]], 'xyxy'
        else:
            people, form = known.get(path.name, []), 'xywh'
        samples = inference_pose(model, image, people, form)
        if samples:
            visualizer.add_datasample(
                out.name,
                np.ascontiguousarray(image[..., ::-1]),
                merge_data_samples(samples),
                draw_gt=False,
                kpt_thr=keypoint_thr,
                out_file=f'{out}.png',
            )
        else:
            mmcv.imwrite(image, f'{out}.png')
        return dict(
            height=height,
            width=width,
            boxes_from='whole picture' if known is None else str(boxes),
            instances=[_to_plain(sample) for sample in samples],
        )

    names = [meta['keypoint_id2name'][index] for index in range(meta['num_keypoints'])]
    header = dict(box_format='xyxy', keypoint_names=names)
    return process_pictures(source, out_dir, predict, header)


def _read_boxes(path: str | Path) -> dict[str, list[list[float]]]:
    """File name -> boxes (xywh) of a COCO-style JSON."""
    data = load_json(str(path))
    check_record(data, dict(images=list, annotations=list), str(path))
    images, annotations = data['images'], data['annotations']
    check_records(images, dict(id=Id, file_name=str), f'{path}: image')
    check_records(annotations, dict(image_id=Id, bbox=list), f'{path}: annotation')
    names = {image['id']: Path(image['file_name']).name for image in images}
    boxes: dict[str, list[list[float]]] = {name: [] for name in names.values()}
    for number, annotation in enumerate(annotations):
        where = f'{path}: annotation {number}'
        if annotation['image_id'] not in names:
            raise ValueError(
                f'{where}: image_id {annotation["image_id"]!r} is not an image of the '
                'file'
            )
        if not annotation.get('iscrowd', 0):
            boxes[names[annotation['image_id']]].append(annotation['bbox'])
    return boxes


def _to_plain(sample: BaseDataElement) -> dict[str, Any]:
    person = sample.pred_instances
    return dict(
        bbox=np.asarray(person.bboxes[0], float).tolist(),
        keypoints=np.asarray(person.keypoints[0], float).tolist(),
        keypoint_scores=np.asarray(person.keypoint_scores[0], float).tolist(),
    )
