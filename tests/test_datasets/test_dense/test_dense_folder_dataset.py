import shutil

import cv2
import numpy as np
import pytest

from sapiens2_mm.datasets import DenseFolderDataset
from sapiens2_mm.datasets.checking.checker import check_dataset
from sapiens2_mm.registry import DATASETS


def step(name, **kwargs):
    return dict(type=f'sapiens2_mm.{name}', **kwargs)


def pipeline(fields, with_camera, *middle):
    return [
        step('LoadImage'),
        step('LoadDenseAnnotations', fields=fields, with_camera=with_camera),
        *middle,
        step('PackDenseInputs'),
    ]


@pytest.fixture
def folder(tmp_path):
    """Three samples in the official layout, one below a folder of its own."""
    root = tmp_path / 'тест 测试 é'
    rng = np.random.default_rng(0)
    for name in ('人 1', 'b', 'c/d.e'):

        def path(kind, suffix, name=name):
            result = root / kind / f'{name}{suffix}'
            result.parent.mkdir(parents=True, exist_ok=True)
            return result

        def image(kind, values, path=path):
            path(kind, '.png').write_bytes(cv2.imencode('.png', values)[1].tobytes())

        image('rgb', rng.integers(0, 255, (24, 18, 3), dtype=np.uint8))
        image('mask', np.full((24, 18), 255, np.uint8))
        image('albedo', rng.integers(0, 255, (24, 18, 3), dtype=np.uint8))
        normals = rng.normal(size=(24, 18, 3))
        np.savez(path('normal', '.npz'), normal=normals)
        np.save(path('depth', '.npy'), rng.uniform(1, 2, (24, 18)))
        camera = np.array([[20.0, 0, 8.5], [0, 20, 11.5], [0, 0, 1]])
        np.savetxt(path('camera_intrinsics', '.txt'), camera)
        np.savetxt(path('camera_extrinsics', '.txt'), np.eye(4))
    return root


def test_folder_layout(folder):
    dataset = DATASETS.build(
        step(
            'DenseFolderDataset',
            data_root=str(folder),
            fields=['normal', 'depth', 'albedo'],
            with_camera=True,
            pipeline=pipeline(
                ['normal', 'depth', 'albedo'],
                True,
                step('DenseRandomFlip', prob=1.0),
                step('Letterbox', size=(32, 32)),
                step('PointmapTarget'),
            ),
        )
    )
    assert len(dataset) == 3
    paths = {dataset[i]['data_samples'].img_path for i in range(3)}
    assert paths == {str(folder / 'rgb' / f'{n}.png') for n in ('人 1', 'b', 'c/d.e')}
    sample = dataset[0]['data_samples']
    assert sample.gt_normal.shape == sample.gt_pointmap.shape == (3, 32, 32)
    assert sample.gt_mask.sum() == 32 * 24  # letterboxed
    assert sample.gt_scale.item() == pytest.approx(768 / (20 * 32 / 24))


def test_folder_errors(folder):
    with pytest.raises(FileNotFoundError, match=r'no file in .*normals'):
        DenseFolderDataset(
            str(folder), fields=['normal'], data_prefix=dict(normal='normals')
        )
    with pytest.raises(ValueError, match=r"unknown folders \['x'\]"):
        DenseFolderDataset(str(folder), data_prefix=dict(x='normals'))
    (folder / 'normal' / 'b.npz').unlink()
    with pytest.raises(FileNotFoundError, match=r"1 of 3 .*no normal file .*\['b'\]"):
        DenseFolderDataset(str(folder), fields=['normal'])
    shutil.rmtree(folder / 'mask')
    assert len(DenseFolderDataset(str(folder), with_mask=False)) == 3
    shutil.rmtree(folder / 'rgb')
    (folder / 'rgb').mkdir()
    with pytest.raises(FileNotFoundError, match=r'no file in .*rgb'):
        DenseFolderDataset(str(folder))


def test_normals_in_another_frame(tmp_path):
    """Y up and Z to the camera, as many renderers have it, and each scan apart."""
    normals = np.full((24, 18, 3), np.float32([0.0, 0.6, 0.8]))
    image = cv2.imencode('.png', np.zeros((24, 18, 3), np.uint8))[1].tobytes()
    for scan in ('0001', '0002'):
        for kind in ('rgb', 'normal'):
            (tmp_path / scan / kind).mkdir(parents=True)
        (tmp_path / scan / 'rgb' / '0.png').write_bytes(image)
        np.save(tmp_path / scan / 'normal' / '0.npy', normals)
    options = dict(
        data_root=str(tmp_path),
        fields=['normal'],
        with_mask=False,
        data_prefix=dict(img='*/rgb/*', normal='*/normal/*'),
        pipeline=pipeline(['normal'], False),
    )
    right = DATASETS.build(
        step('DenseFolderDataset', normal_signs=(1, -1, -1), **options)
    )
    normal = right[1]['data_samples'].gt_normal
    np.testing.assert_allclose(normal[:, 0, 0], [0, -0.6, -0.8], rtol=1e-6)
    assert check_dataset(right).findings == []
    wrong = check_dataset(DATASETS.build(step('DenseFolderDataset', **options)))
    (doubt, _) = wrong.findings
    assert doubt.path.endswith('0001/normal/0.npy') and not wrong.has_errors
    assert doubt.message.startswith('100 % of the normals point away from the camera')
    for signs in ((1, -1), (0, 1, 1)):
        with pytest.raises(ValueError, match='normal_signs must be 1 or -1 for each'):
            DenseFolderDataset(str(tmp_path), normal_signs=signs)


@pytest.mark.parametrize('kind, other', [('normal', 'b.png'), ('rgb', 'b.jpg')])
def test_two_files_of_one_name_are_refused(kind, other, folder):
    """A picture of the normals must not take the place of the normals."""
    (folder / kind / other).write_bytes((folder / 'rgb' / 'b.png').read_bytes())
    with pytest.raises(ValueError, match=rf'{kind}/b\.\w+ have the same name'):
        DenseFolderDataset(str(folder), fields=['normal'])


def test_part_maps(folder):
    with pytest.raises(FileNotFoundError, match=r'no file in .*seg'):
        DenseFolderDataset(str(folder), with_parts=True)
    parts = np.zeros((12, 9), np.uint8)
    parts[:6] = 2
    for name in ('人 1', 'b', 'c/d.e'):
        path = folder / 'seg' / f'{name}_seg.npy'
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, parts)
    load = pipeline(['normal'], False)
    load[1]['excluded_parts'] = (2, 3)
    dataset = DenseFolderDataset(
        str(folder), fields=['normal'], with_parts=True, pipeline=load
    )
    for data in dataset:
        mask = data['data_samples'].gt_mask[0]
        assert not mask[:12].any() and mask[12:].all()
    (folder / 'seg' / 'b_seg.npy').rename(folder / 'seg' / 'b.npy')
    dataset = DenseFolderDataset(str(folder), with_parts=True)
    assert 'seg/b.npy' in {d['parts_path'][-9:] for d in dataset}


def test_unreadable_training_image_is_named(folder):
    (folder / 'rgb' / 'b.png').write_bytes(b'nothing')
    dataset = DenseFolderDataset(str(folder), pipeline=[step('LoadImage')])
    with pytest.raises(ValueError, match=r'cannot read image .*rgb/b\.png'):
        for index in range(3):
            dataset[index]


@pytest.mark.parametrize('fields', [('none',), [3], 'normal'])
def test_unknown_fields(tmp_path, fields):
    with pytest.raises(ValueError, match=r"field must be one of .*'depth'"):
        DenseFolderDataset(str(tmp_path), fields=fields)
