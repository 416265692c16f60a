import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

pytest.importorskip('mmpretrain')

from sapiens2_mm.datasets import UnlabeledImageDataset


def write(path: Path, value: int = 100, size: tuple[int, int] = (40, 30)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = np.full((*size, 3), value, np.uint8)
    path.write_bytes(cv2.imencode(path.suffix, image)[1].tobytes())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / 'тест 测试 é'
    write(root / 'a.jpg', 50)
    write(root / '人 1.png', 100)
    write(root / 'deep' / 'er' / 'c.webp', 150)
    (root / 'notes.txt').write_text('no image')
    return root


def test_folder_at_any_depth(folder):
    dataset = UnlabeledImageDataset(str(folder), pipeline=[])
    assert len(dataset) == 3
    samples = [dataset[n] for n in range(3)]
    assert {Path(s['img_path']).name for s in samples} == {
        'a.jpg',
        '人 1.png',
        'c.webp',
    }
    assert all(s['img'].shape == (40, 30, 3) and s['skipped'] == [] for s in samples)


def test_list_with_relative_and_absolute_paths(folder, tmp_path):
    ann_file = tmp_path / 'list.txt'
    ann_file.write_text(f'人 1.png\n\n{folder / "a.jpg"}\r\n', encoding='utf-8')
    dataset = UnlabeledImageDataset(str(folder), ann_file=str(ann_file), pipeline=[])
    names = [Path(dataset[n]['img_path']).name for n in range(len(dataset))]
    assert names == ['人 1.png', 'a.jpg']


def test_images_of_a_coco_file(folder, tmp_path, log):
    ann_file = tmp_path / 'train.json'
    names = ['人 1.png', 'deep/er/c.webp']
    images = [dict(id=number, file_name=name) for number, name in enumerate(names)]
    ann_file.write_text(json.dumps(dict(images=images, annotations=[])), 'utf-8')
    dataset = UnlabeledImageDataset(str(folder), ann_file=str(ann_file), pipeline=[])
    paths = [dataset[n]['img_path'] for n in range(len(dataset))]
    assert paths == [str(folder / name) for name in names]
    assert f'pretraining on 2 images of {ann_file}' in log.text


@pytest.mark.parametrize(
    ('content', 'error', 'message'),
    [
        ('{"images": []}', RuntimeError, r'train\.json names no image'),
        ('[]', ValueError, r'train\.json: expected an object, got \[\]'),
        ('{"images": [{"id": 3}]}', ValueError, 'image 0: file_name must be a string'),
    ],
)
def test_coco_file_without_images(folder, tmp_path, content, error, message):
    (tmp_path / 'train.json').write_text(content)
    with pytest.raises(error, match=message):
        UnlabeledImageDataset(str(folder), ann_file=str(tmp_path / 'train.json'))


def test_empty_list(folder, tmp_path):
    ann_file = tmp_path / 'list.txt'
    ann_file.write_text('\n')
    with pytest.raises(RuntimeError, match=r'list\.txt names no image'):
        UnlabeledImageDataset(str(folder), ann_file=str(ann_file))


def test_empty_folder(tmp_path):
    write(tmp_path / '.ipynb_checkpoints' / 'a-checkpoint.png')
    with pytest.raises(FileNotFoundError, match=r'no file in .* ends in'):
        UnlabeledImageDataset(str(tmp_path))


def test_unusable_images_are_replaced_and_named(folder):
    data = (folder / 'a.jpg').read_bytes()
    (folder / 'a.jpg').write_bytes(data[: len(data) // 2])
    (folder / 'b.jpg').write_text('not an image')
    write(folder / 'small.png', size=(40, 20))
    (folder / 'deep' / 'er' / 'c.webp').unlink()
    dataset = UnlabeledImageDataset(str(folder), pipeline=[], min_short_side=30)
    skipped: dict[str, str] = {}
    for index in range(len(dataset)):
        for draw in range(20):
            sample = dataset[index, draw]
            assert Path(sample['img_path']).name == '人 1.png'
            skipped.update(sample['skipped'])
    names = {Path(name).name for name in skipped}
    assert names == {'a.jpg', 'b.jpg', 'small.png'}
    assert skipped[str(folder / 'small.png')] == 'shorter side 20 is below 30'
    assert 'cannot read image' in skipped[str(folder / 'a.jpg')]


def test_short_side_limit_is_inclusive(folder):
    dataset = UnlabeledImageDataset(str(folder), pipeline=[], min_short_side=30)
    assert dataset[0]['skipped'] == []
    dataset = UnlabeledImageDataset(
        str(folder), pipeline=[], min_short_side=31, max_skips=5
    )
    with pytest.raises(
        RuntimeError, match='6 images in a row cannot be used, the last'
    ):
        dataset[0]


def test_a_vanished_file_is_skipped(folder):
    dataset = UnlabeledImageDataset(str(folder), pipeline=[])
    Path(dataset[0]['img_path']).unlink()
    assert len(dataset[0, 3]['skipped']) >= 1


def test_errors_of_the_pipeline_are_not_hidden(folder):
    def broken(results: dict) -> dict:
        raise ValueError('a fault of the code')

    with pytest.raises(ValueError, match='a fault of the code'):
        UnlabeledImageDataset(str(folder), pipeline=[broken])[0]


def test_a_draw_always_gives_the_same_randomness(folder):
    dataset = UnlabeledImageDataset(str(folder), pipeline=[])
    first, again, other = (dataset[0, n]['rng'].random() for n in (4, 4, 5))
    assert first == again != other


@pytest.mark.parametrize('mode', ['L', 'LA', 'RGBA', 'P', 'I;16', 'CMYK'])
def test_any_kind_of_image(tmp_path, mode):
    gray = np.tile(np.arange(40, dtype=np.uint8)[:, None] * 6, (1, 30))
    if mode == 'I;16':
        image = Image.fromarray(gray.astype(np.uint16) * 257)
    else:
        image = Image.fromarray(gray).convert('RGB' if mode == 'CMYK' else 'L')
        image = image.convert(mode)
    image.save(tmp_path / ('x.jpg' if mode == 'CMYK' else 'x.png'))
    sample = UnlabeledImageDataset(str(tmp_path), pipeline=[])[0]
    assert sample['skipped'] == []
    assert sample['img'].shape == (40, 30, 3)
    assert np.abs(sample['img'].astype(int) - gray[..., None]).max() <= 8
