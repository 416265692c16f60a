"""The files of one sample, and the record that proves they are complete.

``rgb/N.jpg`` quality 95; ``seg/N.png`` 8-bit class ids; ``albedo/N.png`` 8-bit,
gamma 2.2; ``normal/N.png`` 16-bit RGB, round((n + 1) * 32767.5), all zero where
invalid; ``depth/N.png`` 16-bit, 0.2 mm steps, 0 where invalid. N has six digits.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np

from .palette import GAMMA

if TYPE_CHECKING:
    from .sample import Sample

DEPTH_STEP = 2e-4  # meters per unit; 16 bits reach 13.1 m
NORMAL_SCALE = 32767.5
KINDS = {
    'rgb': '.jpg',
    'seg': '.png',
    'albedo': '.png',
    'normal': '.png',
    'depth': '.png',
}


def sample_name(index: int) -> str:
    """Stem of all files of a sample."""
    return f'{index:06d}'


def record_path(root: Path, index: int) -> Path:
    """Where the record of a sample lies."""
    return root / 'records' / f'{sample_name(index)}.json'


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that it is never seen half done.

    What a killed run left behind has the same name and is written over.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f'{path.name}.partial')
    partial.write_bytes(data)
    partial.replace(path)


def encode_images(sample: Sample) -> dict[str, bytes]:
    """Encoded images of a sample by kind."""
    normal = np.round((sample.normal + 1) * NORMAL_SCALE) * sample.mask[..., None]
    albedo = np.round(sample.albedo ** (1 / GAMMA) * 255).astype(np.uint8)
    depth = np.round(sample.depth / DEPTH_STEP)
    if depth.max() > np.iinfo(np.uint16).max:
        raise ValueError(
            f'depth: expected at most 13.1 m, got {sample.depth.max():.1f} m; '
            'use an image size that is not as elongated'
        )
    images = {
        'rgb': sample.rgb[..., ::-1],
        'seg': sample.label,
        'albedo': albedo[..., ::-1],
        'normal': normal.astype(np.uint16)[..., ::-1],
        'depth': depth.astype(np.uint16),
    }
    options = {
        '.jpg': [cv2.IMWRITE_JPEG_QUALITY, 95],
        '.png': [cv2.IMWRITE_PNG_COMPRESSION, 6],
    }
    return {
        kind: cv2.imencode(ext, np.ascontiguousarray(images[kind]), options[ext])[
            1
        ].tobytes()
        for kind, ext in KINDS.items()
    }


def coco_entries(sample: Sample, index: int) -> tuple[dict, dict]:
    """COCO ``images`` and ``annotations`` entries of a sample.

    Annotation ids start at 1: COCO evaluators read 0 as "no match". Besides the
    COCO keys, images carry the camera and annotations ``keypoint_depths``: Z in
    meters of all 308 points, also of those outside the image.
    """
    height, width = sample.mask.shape
    camera = sample.camera
    image = {
        'id': index,
        'file_name': f'rgb/{sample_name(index)}.jpg',
        'width': width,
        'height': height,
        'camera': {
            'fx': camera.focal,
            'fy': camera.focal,
            'cx': camera.cx,
            'cy': camera.cy,
        },
        'framing': sample.framing,
        'pose': sample.pose,
    }
    rows, cols = np.nonzero(sample.mask)
    left, top = int(cols.min()), int(rows.min())
    keypoints = [
        [round(float(u), 2), round(float(v), 2), int(flag)] if flag else [0, 0, 0]
        for u, v, flag in sample.keypoints
    ]
    annotation = {
        'id': index + 1,
        'image_id': index,
        'category_id': 1,
        'iscrowd': 0,
        'bbox': [left, top, int(cols.max()) - left + 1, int(rows.max()) - top + 1],
        'area': int(sample.mask.sum()),
        'num_keypoints': int((sample.keypoints[:, 2] > 0).sum()),
        'keypoints': [value for point in keypoints for value in point],
        'keypoint_depths': [round(float(z), 4) for z in sample.keypoint_depth],
    }
    return image, annotation


def write_sample(root: Path, sample: Sample, index: int) -> None:
    """Write the images, then the record with their hashes."""
    hashes = {}
    for kind, data in encode_images(sample).items():
        name = f'{kind}/{sample_name(index)}{KINDS[kind]}'
        write_atomic(root / name, data)
        hashes[name] = hashlib.sha256(data).hexdigest()
    image, annotation = coco_entries(sample, index)
    record = {'files': hashes, 'image': image, 'annotation': annotation}
    write_atomic(record_path(root, index), json.dumps(record).encode())


def read_record(root: Path, index: int) -> dict | None:
    """Record of a sample; None if it, or a file that it names, is not intact."""
    try:
        record = json.loads(record_path(root, index).read_text())
        for name, expected in record['files'].items():
            found = hashlib.sha256((root / name).read_bytes()).hexdigest()
            if found != expected:
                return None
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError, KeyError):
        return None
    return record
