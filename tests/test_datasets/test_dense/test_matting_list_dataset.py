import json

import cv2
import numpy as np
import pytest

from sapiens2_mm.datasets import MattingListDataset

SIZE = (40, 30)


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(0, 256, (*SIZE, 3), dtype=np.uint8)


def write(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(cv2.imencode('.png', array)[1].tobytes())
    return str(path)


def half_matte():
    """Left third 0, middle third one half, right third opaque."""
    matte = np.zeros(SIZE, np.uint8)
    matte[:, 10:20] = 128
    matte[:, 20:] = 255
    return matte


def test_list_dataset(tmp_path, image):
    for name in ('a', 'b'):
        write(tmp_path / 'img' / f'{name}.png', image)
        write(tmp_path / 'pha' / f'{name}.png', half_matte())
    entries = [dict(image=f'img/{n}.png', mask=f'pha/{n}.png') for n in ('a', 'b')]
    (tmp_path / 'list.json').write_text(json.dumps(entries))
    pipeline = [
        dict(type='sapiens2_mm.LoadImage'),
        dict(type='sapiens2_mm.LoadMatte'),
        dict(type='sapiens2_mm.DenseResize', size=(32, 32)),
        dict(type='sapiens2_mm.PackDenseInputs'),
    ]
    dataset = MattingListDataset(
        ann_file='list.json', data_root=str(tmp_path), pipeline=pipeline
    )
    assert len(dataset) == 2
    sample = dataset[1]['data_samples']
    assert sample.gt_alpha.shape == (1, 32, 32)
    assert sample.gt_foreground.shape == (3, 32, 32)

    write(tmp_path / 'c.png', np.dstack([image, half_matte()]))
    (tmp_path / 'list.txt').write_text('c.png\n\n')
    dataset = MattingListDataset(
        ann_file='list.txt', data_root=str(tmp_path), pipeline=pipeline
    )
    assert len(dataset) == 1
    assert dataset[0]['data_samples'].gt_foreground_mask.all()


@pytest.mark.parametrize(
    'content, message',
    [
        ('[', r'list\.json is not a readable JSON file'),
        ('[]', r'list\.json lists no image'),
        ('{"image": "a"}', 'entry: expected a list'),
        ('[{"image": "a"}]', 'entry 0: mask must be a string, got nothing'),
    ],
)
def test_list_errors(tmp_path, content, message):
    (tmp_path / 'list.json').write_text(content)
    with pytest.raises(ValueError, match=message):
        MattingListDataset(ann_file='list.json', data_root=str(tmp_path))
