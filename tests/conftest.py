"""Fixtures shared by all tests."""

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

torch.set_num_threads(min(2, torch.get_num_threads()))


@pytest.fixture(scope='session')
def data_dir() -> Path:
    """The folder ``tests/data``."""
    return Path(__file__).parent / 'data'


@pytest.fixture(scope='session')
def repo_dir() -> Path:
    """The root of the repository."""
    return Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def nothing_stays_of_a_run():
    """A run's logger and default scope stay the current ones of the process."""
    yield
    if 'mmengine.logging' in sys.modules:
        loggers = sys.modules['mmengine.logging'].MMLogger._instance_dict
        for logger in loggers.values():
            for handler in logger.handlers:
                handler.close()
        loggers.clear()
    if 'mmengine.registry' in sys.modules:
        sys.modules['mmengine.registry'].DefaultScope._instance_dict.clear()


@pytest.fixture
def log(caplog):
    """Messages of mmengine's logger, which does not propagate by itself."""
    from mmengine.logging import MMLogger

    logger = MMLogger.get_current_instance()
    logger.addHandler(caplog.handler)
    caplog.set_level(logging.INFO)
    yield caplog
    logger.removeHandler(caplog.handler)


def keypoint_table(num_keypoints: int = 5) -> dict:
    """Keypoint metainfo of one middle point and mirrored pairs, with two groups."""
    names = ['nose']
    for number in range((num_keypoints - 1) // 2):
        names += [f'left_{number}', f'right_{number}']
    swap = {'left': 'right', 'right': 'left'}
    info = {}
    for index, name in enumerate(names):
        side, _, rest = name.partition('_')
        info[index] = dict(
            name=name,
            swap=f'{swap[side]}_{rest}' if side in swap else '',
            type='upper' if index < 3 else 'lower',
            group='head' if index < 3 else 'legs',
            color=[10 * index, 200, 100],
        )
    return dict(
        dataset_name=f'table{len(names)}',
        keypoint_info=info,
        skeleton_info={0: dict(link=('left_0', 'right_0'), color=[0, 0, 255])},
        sigmas=[0.05] * len(names),
    )


@pytest.fixture
def table5() -> dict:
    """Keypoint metainfo of 5 points."""
    return keypoint_table(5)


@pytest.fixture
def mini_coco(tmp_path: Path) -> Callable[..., Path]:
    """Writes a COCO-style file of noise images of 64 x 48 (H x W) and returns it.

    Call it with one dict per person; each overrides a good annotation and goes into
    an image of its own, unless it says ``image_id``. ``image_ids`` names the images.
    """

    def write(
        *persons: dict,
        num_keypoints: int = 5,
        image_ids: list | None = None,
        categories: list[dict] | None = None,
    ) -> Path:
        rng = np.random.default_rng(0)
        image_ids = image_ids or list(range(len(persons)))
        categories = categories or [dict(id=1, name='person')]
        images = []
        for index, image_id in enumerate(image_ids):
            file_name = f'{index}.png'
            noise = rng.integers(0, 255, (64, 48, 3), dtype=np.uint8)
            cv2.imwrite(str(tmp_path / file_name), noise)
            images.append(dict(id=image_id, file_name=file_name, width=48, height=64))
        annotations = []
        for index, person in enumerate(persons):
            x = np.linspace(8, 40, num_keypoints)
            y = np.linspace(50, 12, num_keypoints)
            points = np.stack([x, y, np.full(num_keypoints, 2)], axis=1)
            annotation = dict(
                id=index,
                image_id=image_ids[index % len(image_ids)],
                category_id=categories[0]['id'],
                bbox=[4, 6, 40, 52],
                area=40 * 52,
                iscrowd=0,
                keypoints=points.reshape(-1).tolist(),
            )
            annotations.append({**annotation, **person})
        content = dict(images=images, annotations=annotations, categories=categories)
        path = tmp_path / 'annotations.json'
        path.write_text(json.dumps(content))
        return path

    return write
