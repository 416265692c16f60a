"""Two made-up samples in the exact layout of each public data set."""

import json
from pathlib import Path

import cv2
import numpy as np

SIZE = (64, 48)  # (height, width)
# config -> what its guide calls the page of the data
PAGES = dict(
    coco='page "COCO - Common Objects in Context"',
    coco_wholebody='GitHub page "COCO-WholeBody"',
    cihp='page "Look into Person" (LIP)',
    lip='TrainVal_parsing_annotations.zip',
    thuman2_depth='GitHub page "THuman2.0-Dataset"',
    thuman2_normal='GitHub page "THuman2.0-Dataset"',
    hi4d_depth='page "Hi4D: 4D Instance Segmentation',
    hi4d_normal='page "Hi4D: 4D Instance Segmentation',
    p3m10k='GitHub page "P3M"',
    ppm100='GitHub page "PPM"',
)
_HI4D = 'pair00/dance00/{}/4/00001{}'
_NOISE = np.random.default_rng(0).integers(0, 255, (*SIZE, 3), dtype=np.uint8)
_MASK = np.zeros(SIZE, np.uint8)
_MASK[10:60, 8:40] = 255
_DEPTH = np.where(_MASK > 0, np.linspace(2, 3, SIZE[1], dtype=np.float32), 0)
_NORMAL = np.where(_MASK[..., None] > 0, np.float32([0, 0.6, -0.8]), 0)


def write_layout(name: str, root: Path) -> None:
    """Write the data of ``configs/_base_/datasets/public/NAME.py`` below ``root``."""
    data = name.split('_')[0]
    if data == 'coco':
        _write_coco(root, wholebody=name == 'coco_wholebody')
        return
    for number in (0, 1):
        for path, array in _files(data, number).items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix == '.npy':
                np.save(file, array)
            else:
                cv2.imwrite(str(file), array)


def _files(data: str, number: int) -> dict[str, np.ndarray]:
    labels = np.zeros(SIZE, np.uint8)
    labels[:40].flat = np.arange(20).repeat(2)  # each of the 20 classes
    if data == 'cihp':
        return {
            f'Validation/Images/000{number}.jpg': _NOISE,
            f'Validation/Category_ids/000{number}.png': labels,
            f'Validation/Categories/000{number}.png': _NOISE,
        }
    if data == 'lip':
        return {
            f'TrainVal_images/val_images/{number}_7.jpg': _NOISE,
            f'TrainVal_parsing_annotations/val_segmentations/{number}_7.png': labels,
        }
    if data == 'thuman2':
        return {
            f'000{number}/rgb/face_000.png': _NOISE,
            f'000{number}/mask/face_000.png': _MASK,
            f'000{number}/depth/face_000.npy': _DEPTH,
            f'000{number}/normal/face_000.npy': _NORMAL,
        }
    if data == 'hi4d':
        mask = f'pair00/dance00/seg/img_seg_mask/4/all/00001{number}.png'
        return {
            f'{_HI4D.format("images", number)}.jpg': _NOISE,
            mask: _MASK,
            mask.replace('all', '0'): _MASK // 2,
            f'{_HI4D.format("depth", number)}.npy': _DEPTH,
            f'{_HI4D.format("normal", number)}.npy': _NORMAL,
        }
    if data == 'p3m10k':
        folder = 'validation/P3M-500-P'
        return {
            f'{folder}/blurred_image/p_{number}.jpg': _NOISE,
            f'{folder}/mask/p_{number}.png': _MASK,
            f'{folder}/trimap/p_{number}.png': _MASK,
        }
    return {f'image/{number}.jpg': _NOISE, f'matte/{number}.jpg': _MASK}


def _write_coco(root: Path, wholebody: bool) -> None:
    """Two images of one person each, and their boxes as detections."""
    for folder in ('val2017', 'annotations', 'person_detection_results'):
        (root / folder).mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    counts = dict(keypoints=17)
    if wholebody:
        counts.update(foot_kpts=6, face_kpts=68, lefthand_kpts=21, righthand_kpts=21)
    images, annotations, detections = [], [], []
    for number in (0, 1):
        name = f'00000000000{number}.jpg'
        cv2.imwrite(str(root / 'val2017' / name), _NOISE)
        images.append(
            dict(id=number + 7, file_name=name, height=SIZE[0], width=SIZE[1])
        )
        points = {
            field: np.column_stack(
                [rng.uniform(8, 40, (count, 2)), np.full(count, 2)]
            ).ravel()
            for field, count in counts.items()
        }
        annotations.append(
            dict(
                id=number,
                image_id=number + 7,
                category_id=1,
                bbox=[4, 4, 40, 50],
                area=2000.0,
                iscrowd=0,
                num_keypoints=17,
                segmentation=[],
                **{field: values.tolist() for field, values in points.items()},
            )
        )
        detections.append(
            dict(image_id=number + 7, category_id=1, bbox=[4, 4, 40, 50], score=0.9)
        )
    content = dict(
        images=images,
        annotations=annotations,
        categories=[dict(id=1, name='person')],
    )
    name = 'coco_wholebody_val_v1.0' if wholebody else 'person_keypoints_val2017'
    (root / 'annotations' / f'{name}.json').write_text(json.dumps(content))
    (root / 'person_detection_results').joinpath(
        'COCO_val2017_detections_AP_H_70_person.json'
    ).write_text(json.dumps(detections))
