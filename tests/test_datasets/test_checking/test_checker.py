import copy
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mmengine.config import Config
from PIL import Image
from torch.utils.data import ChainDataset

from sapiens2_mm.datasets import (
    LoadDenseAnnotations,
    LoadImage,
    LoadMatte,
    RandomBackground,
)
from sapiens2_mm.datasets.checking.checker import check_config, check_dataset

LOADER = 'sapiens2_mm.LoadSegAnnotations'


def seg_config(root, **dataset):
    pytest.importorskip('mmseg')
    dataset = dict(
        type='sapiens2_mm.SegDataset',
        data_root=str(root),
        metainfo=dict(classes=('background', 'shirt', 'hat')),
        pipeline=[dict(type='sapiens2_mm.LoadImage'), dict(type=LOADER)],
        **dataset,
    )
    return Config(dict(default_scope='mmseg', train_dataloader=dict(dataset=dataset)))


def write(root, name, mask, size=None):
    for folder in ('rgb', 'seg'):
        (root / folder).mkdir(exist_ok=True, parents=True)
    mask = np.array(mask, np.uint8)
    Image.new('RGB', size or mask.shape[::-1]).save(root / 'rgb' / f'{name}.jpg')
    Image.fromarray(mask).save(root / 'seg' / f'{name}.png')


@pytest.fixture
def broken(tmp_path):
    """Six samples, of which only the first is right."""
    root = tmp_path / 'данные'
    write(root, 'good', [[0, 1, 1, 255]])
    write(root, 'high', [[0, 1, 7, 7, 9]])
    write(root, 'empty', [[0, 0, 255]])
    write(root, 'ignored', [[255, 255]])
    write(root, 'size', [[0, 1]], size=(3, 1))
    write(root, 'cut', [[0, 1]])
    data = (root / 'rgb' / 'cut.jpg').read_bytes()
    (root / 'rgb' / 'cut.jpg').write_bytes(data[: len(data) // 2])
    (root / 'seg' / 'cut.png').write_text('no image')
    return root


@pytest.mark.parametrize('workers', [0, 2])
def test_report_on_broken_masks(broken, workers):
    report = check_config(seg_config(broken), workers=workers)
    found = {(f.kind, Path(f.path).name): f.message for f in report.findings}
    assert set(found) == {
        ('label out of range', 'high.png'),
        ('empty annotation', 'empty.png'),
        ('empty annotation', 'ignored.png'),
        ('size mismatch', 'size.png'),
        ('unreadable file', 'cut.jpg'),
        ('unreadable file', 'cut.png'),
    }
    assert (
        '7 (2 px), 9 (1 px) are neither one of the 3 classes nor 255'
        in found['label out of range', 'high.png']
    )
    assert 'expected size (1, 3) like its image' in found['size mismatch', 'size.png']
    assert found['empty annotation', 'ignored.png'] == 'every pixel is ignored'
    # background, shirt, hat, ignored; of the masks that load
    assert report.counts['pixels'].tolist() == [3, 2, 0, 4]
    assert report.counts['images'].tolist() == [2, 1, 0, 3]
    assert report.absent() == ['hat']
    assert report.has_errors
    text = report.to_text()
    assert text.startswith('6 samples read')
    assert '|  1 | shirt      |      2 | 22.22 % |      1 |' in text
    assert 'never occur: hat' in text
    assert 'ERROR: unreadable file: 2' in text
    assert 'warning: empty annotation: 2' in text
    json.dumps(report.to_dict(), allow_nan=False)


def test_long_lists_are_cut(tmp_path):
    for index in range(5):
        write(tmp_path, f'i{index}', [[0, 9]])
    text = check_config(seg_config(tmp_path)).to_text(max_listed=2)
    assert 'i1.png' in text and 'i2.png' not in text and '... and 3 more' in text


def test_binary_masks_of_0_and_255(tmp_path):
    write(tmp_path, 'a', [[0, 255]])
    text = check_config(seg_config(tmp_path)).to_text()
    assert 'never occur: shirt, hat' in text
    assert 'foreground is stored as the ignored value, set label_map' in text
    fixed = check_config(seg_config(tmp_path, label_map={0: 0, 255: 1}))
    assert fixed.counts['pixels'].tolist() == [1, 1, 0, 0] and not fixed.findings


def test_warnings_alone_are_no_errors(tmp_path):
    write(tmp_path, 'a', [[0, 0]])
    report = check_config(seg_config(tmp_path))
    assert report.findings and not report.has_errors
    write(tmp_path, 'b', [[1, 2]])
    (tmp_path / 'rgb' / 'a.jpg').unlink()
    assert check_config(seg_config(tmp_path)).to_text().endswith('no faults found')


def test_color_masks_take_the_palette_of_the_pipeline(tmp_path):
    write(tmp_path, 'a', [[0, 1]])
    colors = np.array([[[9, 8, 7], [250, 0, 1]]], np.uint8)
    Image.fromarray(colors).save(tmp_path / 'seg' / 'a.png')
    cfg = seg_config(tmp_path)
    cfg.train_dataloader.dataset = dict(
        type='RepeatDataset', times=2, dataset=cfg.train_dataloader.dataset
    )
    assert [f.kind for f in check_config(cfg).findings] == ['unreadable file']
    palette = [(9, 8, 7), (250, 0, 1)]
    cfg.train_dataloader.dataset.dataset.pipeline[1].palette = palette
    report = check_config(cfg)
    assert report.counts['pixels'].tolist() == [1, 1, 0, 0] and not report.findings


def test_keypoints(mini_coco, table5):
    pytest.importorskip('mmpose')
    path = mini_coco({}, {}, {})
    dataset = dict(
        type='sapiens2_mm.Humans308Dataset',
        data_root=str(path.parent),
        ann_file=path.name,
        metainfo=table5,
    )
    cfg = Config(dict(default_scope='mmpose', val_dataloader=dict(dataset=dataset)))
    report = check_config(cfg, 'val')
    assert report.counts['keypoints'].tolist() == [3] * 5 and not report.findings
    assert 'labeled keypoints per sample: 5.0 of 5' in report.to_text()
    (path.parent / '1.png').write_bytes(b'no image')
    (finding,) = check_config(cfg, 'val').findings
    assert finding.kind == 'unreadable file' and finding.path.endswith('1.png')
    Image.new('RGB', (8, 9)).save(path.parent / '1.png')
    (finding,) = check_config(cfg, 'val').findings
    assert finding.kind == 'size mismatch' and finding.path.endswith('1.png')


def test_doubts_are_warnings(mini_coco, table5):
    pytest.importorskip('mmpose')
    path = mini_coco({})
    table5['sigmas'] = [3] * 5
    dataset = dict(
        type='sapiens2_mm.Humans308Dataset',
        data_root=str(path.parent),
        ann_file=path.name,
        metainfo=table5,
    )
    other = copy.deepcopy(dataset)
    info = other['metainfo']['keypoint_info']
    info[0]['name'], info[3]['name'] = 'left_1', 'nose'
    info[0]['swap'], info[3]['swap'], info[4]['swap'] = 'right_1', '', 'left_1'
    loaders = {
        'train_dataloader': dict(dataset=dataset),
        'val_dataloader': dict(dataset=other),
    }
    report = check_config(Config(dict(default_scope='mmpose', **loaders)))
    assert not report.has_errors
    sigmas, order = report.findings
    assert sigmas.kind == order.kind == 'doubtful annotations'
    assert 'sigmas of' in sigmas.message
    assert order.path == 'metainfo of val'
    assert '2 names are in another order, such as left_1' in order.message


class Samples:
    """A dataset of given samples."""

    metainfo: dict = {}

    def __init__(self, *samples):
        self.get_data_info = samples.__getitem__
        self.samples = samples

    def __len__(self):
        return len(self.samples)


class Steps:
    """A pipeline of given steps."""

    def __init__(self, *steps):
        self.transforms = steps


DENSE_FILES = ('mask', 'depth', 'normal', 'albedo', 'parts', 'intrinsics', 'extrinsics')


@pytest.fixture
def dense(tmp_path):
    """A dataset of one sample with every kind of map, all right."""
    Image.new('RGB', (4, 3)).save(tmp_path / 'i.png')
    Image.new('L', (4, 3), 255).save(tmp_path / 'mask.png')
    Image.new('L', (4, 3), 255).save(tmp_path / 'alpha.png')
    np.save(tmp_path / 'depth.npy', np.ones((3, 4), np.float32))
    np.save(tmp_path / 'normal.npy', -np.ones((3, 4, 3), np.float32))
    np.save(tmp_path / 'albedo.npy', np.ones((3, 4, 3), np.float32))
    np.save(tmp_path / 'parts.npy', np.zeros((6, 8), np.uint8))
    np.savetxt(tmp_path / 'intrinsics.txt', [[5, 0, 2], [0, 5, 1], [0, 0, 1]])
    np.savetxt(tmp_path / 'extrinsics.txt', np.eye(4))
    files = [path for path in tmp_path.iterdir() if path.stem != 'i']
    sample = {f'{path.stem}_path': str(path) for path in files}
    dataset = Samples(dict(sample, img_path=str(tmp_path / 'i.png')))
    dataset.pipeline = Steps(
        LoadImage(),
        LoadDenseAnnotations(('normal', 'depth', 'albedo'), True, excluded_parts=[2]),
        LoadMatte(),
    )
    return dataset


def test_good_maps(dense):
    assert check_dataset(dense).to_text() == '1 samples read\nno faults found'


@pytest.mark.parametrize('name', [*DENSE_FILES, 'alpha', 'i'])
@pytest.mark.parametrize('fault', ['missing', 'cut', 'text'])
def test_every_file_is_decoded(dense, tmp_path, name, fault):
    (path,) = tmp_path.glob(f'{name}.*')
    if fault == 'missing':
        path.unlink()
    else:
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 3] if fault == 'cut' else b'no such file')
    (finding,) = check_dataset(dense).findings
    assert finding.kind == 'unreadable file' and finding.path == str(path)


@pytest.mark.parametrize(
    'name, values, kind, message',
    [
        ('depth', np.ones((3, 4), np.uint8), 'unreadable', 'integers of 16 bits'),
        ('normal', np.ones((3, 4), np.float32), 'size', r'3 channels, got \(3, 4\)'),
        ('normal', np.ones((4, 3, 3), np.float32), 'size', r'size \(3, 4\) like its'),
        ('albedo', np.full((3, 4, 3), 9.0), 'unreadable', r'expected albedo in \[0, 1'),
        ('parts', np.ones((3, 4)), 'unreadable', 'expected part ids'),
        ('parts', np.full((3, 4), 2), 'empty', 'no valid pixel'),
        ('depth', np.full((3, 4), np.nan), 'masked', '12 of 12 pixels'),
    ],
)
def test_wrong_values(dense, tmp_path, name, values, kind, message):
    np.save(tmp_path / f'{name}.npy', values)
    finding = check_dataset(dense).findings[0]
    assert finding.kind.startswith(kind) and re.search(message, finding.message)


def test_all_faults_of_a_sample(dense, tmp_path):
    names = {*DENSE_FILES, 'alpha', 'i'}
    for name in names:
        (path,) = tmp_path.glob(f'{name}.*')
        path.write_bytes(b'')
    found = {Path(f.path).stem for f in check_dataset(dense).findings}
    assert found == names - {'extrinsics', 'intrinsics'} | {'extrinsics'}


def test_photos_of_other_steps(dense, tmp_path):
    folder = tmp_path / 'photos'
    folder.mkdir()
    Image.new('RGB', (4, 3)).save(folder / 'a.png')
    (folder / 'b.png').write_bytes(b'no image')
    dense.pipeline.transforms += (RandomBackground(str(folder)), RandomBackground())
    (finding,) = check_dataset(dense).findings
    assert finding.path == str(folder / 'b.png')


def test_keypoint_faults_from_samples(tmp_path):
    Image.new('RGB', (4, 3)).save(tmp_path / 'i.png')
    sample = dict(
        id=7,
        img_path=str(tmp_path / 'i.png'),
        bbox=np.array([[0, 0, 9, 3]]),
        keypoints=np.zeros((1, 2, 2)),
        keypoints_visible=np.zeros((1, 2)),
    )
    findings = check_dataset(Samples(sample)).findings
    assert [f.kind for f in findings] == ['empty annotation', 'box outside the image']
    assert findings[0].path.endswith('i.png (annotation 7)')


def test_errors():
    with pytest.raises(ValueError, match=r'no test_dataloader\.dataset'):
        check_config(Config(dict(model=dict())), 'test')
    with pytest.raises(TypeError, match='ChainDataset is a stream'):
        check_dataset(ChainDataset([]))


@pytest.mark.slow
def test_tool(broken, tmp_path, repo_dir):
    config = tmp_path / 'config.py'
    seg_config(broken).dump(config)
    out = tmp_path / 'report.json'
    command = [sys.executable, 'tools/check_dataset.py', config, '--out', out]
    done = subprocess.run(command, cwd=repo_dir, capture_output=True, text=True)
    assert done.returncode == 1
    assert 'ERROR: label out of range: 1' in done.stdout
    assert '6/6' in done.stderr
    assert json.loads(out.read_text())['num_samples'] == 6
    for name in ('high', 'size', 'cut'):
        (broken / 'rgb' / f'{name}.jpg').unlink()
    done = subprocess.run(command, cwd=repo_dir, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
