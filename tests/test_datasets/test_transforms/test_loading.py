import cv2
import numpy as np
import pytest
from mmengine.registry import TRANSFORMS
from PIL import Image

from sapiens2_mm.datasets import LoadDenseAnnotations, LoadImage, LoadSegAnnotations

SIZE = (6, 5)


def test_image_from_file_and_array(tmp_path):
    rgb = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    path = str(tmp_path / 'a.png')
    cv2.imwrite(path, rgb[..., ::-1])
    results = LoadImage()({'img_path': path})
    assert results['img_shape'] == results['ori_shape'] == (20, 30)
    assert (results['img'] == rgb[..., ::-1]).all()
    results = LoadImage()({'img': rgb[..., 0]})
    assert results['img'].shape == (20, 30, 3) and results['img_path'] is None


def test_image_of_another_size_than_its_annotation_says():
    results = dict(img=np.zeros((4, 6, 3), np.uint8), img_id=7, annotated_size=(4, 6.0))
    LoadImage()(dict(results))
    message = r'height and width \(4, 6\), its annotation file says \(6, 4\) .* id 7;'
    with pytest.raises(ValueError, match=message):
        LoadImage()({**results, 'annotated_size': (6, 4)})


def test_mmseg_s_inferencer_finds_and_feeds_the_loaders(tmp_path):
    path = str(tmp_path / 'a.png')
    image = np.full((4, 3, 3), (0, 0, 255), np.uint8)
    cv2.imwrite(path, image)
    for name in ('LoadImageFromFile', 'InferencerLoader'):
        load = TRANSFORMS.build(dict(type=name, _scope_='sapiens2_mm'))
        assert type(load) is LoadImage
    for source, img_path in ((path, path), (image, None)):
        results = load(source)
        assert np.array_equal(results['img'], image)
        assert results['img_path'] == img_path and results['ori_shape'] == (4, 3)
    step = TRANSFORMS.build(dict(type='LoadAnnotations', _scope_='sapiens2_mm'))
    assert type(step) is LoadSegAnnotations


def test_masks_in_a_pipeline_for_inference():
    load = LoadSegAnnotations()
    with pytest.raises(ValueError, match=r'remove LoadSegAnnotations .*test_pipeline'):
        load.transform(dict(img_path='a.jpg'))


def test_masks_before_the_image(tmp_path):
    path = str(tmp_path / 'mask.png')
    cv2.imwrite(path, np.zeros((4, 3), np.uint8))
    with pytest.raises(ValueError, match=r'a.jpg has no ori_shape; load the image'):
        LoadSegAnnotations()(dict(img_path='a.jpg', seg_map_path=path))


@pytest.fixture
def normals():
    values = np.random.default_rng(0).normal(size=(*SIZE, 3))
    return values / np.linalg.norm(values, axis=2, keepdims=True)


def load(tmp_path, field, array, suffix='.npy', mask=None, **results):
    """Save an array and load it as a field."""
    path = tmp_path / f'{field}{suffix}'
    if suffix == '.npy':
        np.save(path, array)
    elif suffix == '.npz':
        np.savez(path, **(array if isinstance(array, dict) else {field: array}))
    else:
        cv2.imwrite(str(path), array[..., ::-1] if array.ndim == 3 else array)
    results.update({'img_path': 'a.jpg', 'ori_shape': SIZE, f'{field}_path': str(path)})
    if mask is not None:
        cv2.imwrite(str(tmp_path / 'mask.png'), mask)
        results['mask_path'] = str(tmp_path / 'mask.png')
    return LoadDenseAnnotations(fields=[field])(results)


@pytest.mark.parametrize('kind', ['.npy', '.npz', 'uint16', 'uint8', 'long'])
def test_normals_of_any_kind(normals, kind, tmp_path):
    stored, suffix, tolerance = normals, '.png', 1e-6
    if kind in ('uint8', 'uint16'):
        top = np.iinfo(kind).max
        stored = np.rint((normals + 1) * top / 2).astype(kind)
        stored[0, 0] = 0  # unknown
        tolerance = 0.02 if kind == 'uint8' else 1e-4
    elif kind == 'long':
        stored, suffix = 5 * normals, '.npy'
    else:
        suffix = kind
    results = load(tmp_path, 'normal', stored, suffix)
    mask = results['gt_mask']
    assert results['gt_normal'].dtype == np.float32 and mask.dtype == bool
    assert np.abs(results['gt_normal'] - normals)[mask].max() < tolerance
    assert np.abs(np.linalg.norm(results['gt_normal'][mask], axis=1) - 1).max() < 1e-6
    assert mask.sum() == 30 - kind.startswith('uint')


def test_unknown_normals_leave_the_mask(normals, tmp_path):
    normals[0, 0] = 0
    normals[1, 1, 2] = np.nan
    normals[2, 2, 0] = np.inf
    mask = np.full(SIZE, 255, np.uint8)
    mask[3, 3] = 0
    results = load(tmp_path, 'normal', normals.astype(np.float64), mask=mask)
    expected = np.ones(SIZE, bool)
    expected[[0, 1, 2, 3], [0, 1, 2, 3]] = False
    assert (results['gt_mask'] == expected).all()
    assert np.isfinite(results['gt_normal']).all()
    unknown = [[0, 1, 2], [0, 1, 2]]
    assert (results['gt_normal'][unknown[0], unknown[1]] == 0).all()


def test_depth(tmp_path):
    depth = np.linspace(0.5, 3, 30).reshape(SIZE)
    depth[0, :4] = np.nan, np.inf, 0, -1
    results = load(tmp_path, 'depth', depth)
    assert results['gt_depth'].dtype == np.float32
    assert not results['gt_mask'][0, :4].any() and results['gt_mask'].sum() == 26
    mask = results['gt_mask']
    assert np.allclose(results['gt_depth'][mask], depth[mask])
    assert (results['gt_depth'][~mask] == 0).all()


def test_depth_in_steps(tmp_path):
    steps = np.arange(30, dtype=np.uint16).reshape(SIZE) * 1000
    results = load(tmp_path, 'depth', steps, '.png', depth_scale=2e-4)
    assert np.allclose(results['gt_depth'], steps * 2e-4)
    assert results['gt_mask'].sum() == 29  # 0 is unknown
    with pytest.raises(ValueError, match=r'no depth_scale; .* as .*depth\.png holds'):
        load(tmp_path, 'depth', steps, '.png')


@pytest.mark.parametrize('dtype', ['uint8', 'uint16', 'float32'])
def test_albedo_is_rgb(dtype, tmp_path):
    values = np.random.default_rng(0).uniform(size=(*SIZE, 3))
    top = 1 if dtype == 'float32' else np.iinfo(dtype).max
    stored = (values * top).astype(dtype)
    suffix = '.npy' if dtype == 'float32' else '.png'
    results = load(tmp_path, 'albedo', stored, suffix)
    assert np.abs(results['gt_albedo'] - values).max() < 0.004
    assert results['gt_albedo'].dtype == np.float32


@pytest.mark.parametrize('mode', ['L', '1', 'I;16', 'RGB', 'RGBA', 'P', 'npy'])
def test_masks_of_any_kind(mode, tmp_path):
    """Class 2 is green in color, so its red channel is 0; it is valid all the same."""
    labels = np.zeros(SIZE, np.uint8)
    labels[2, 3], labels[4, 1] = 1, 2
    palette = np.array([[0, 0, 0], [200, 0, 0], [0, 200, 0]], np.uint8)
    path = tmp_path / ('mask.npy' if mode == 'npy' else 'mask.png')
    if mode == 'npy':
        np.save(path, labels > 0)
    elif mode == 'P':
        image = Image.fromarray(labels, mode='P')
        image.putpalette(palette.flatten().tolist())
        image.save(path)
    elif mode in ('RGB', 'RGBA'):
        Image.fromarray(palette[labels]).convert(mode).save(path)
    elif mode == 'I;16':
        Image.fromarray(labels.astype(np.uint16)).save(path)
    else:
        Image.fromarray((labels > 0) * np.uint8(255)).convert(mode).save(path)
    results = dict(ori_shape=SIZE, mask_path=str(path))
    mask = LoadDenseAnnotations(fields=[])(results)['gt_mask']
    assert (mask == (labels > 0)).all() and mask.dtype == bool


def test_a_last_dimension_of_one_is_dropped(tmp_path):
    results = load(tmp_path, 'depth', np.ones((*SIZE, 1)))
    assert results['gt_depth'].shape == SIZE


def test_camera(tmp_path):
    matrix = np.array([[70.0, 0, 2], [0, 71, 3], [0, 0, 1]])
    np.savetxt(tmp_path / 'k.txt', matrix)
    np.savetxt(tmp_path / 'e.txt', np.eye(4))
    step = LoadDenseAnnotations(fields=[], with_camera=True)
    results = step(
        dict(
            ori_shape=SIZE,
            intrinsics_path=str(tmp_path / 'k.txt'),
            extrinsics_path=str(tmp_path / 'e.txt'),
        )
    )
    for name in ('intrinsics', 'map_intrinsics', 'ori_intrinsics'):
        assert (results[name] == matrix).all()
    assert (results['extrinsics'] == np.eye(4)).all()
    results = step(dict(ori_shape=SIZE, camera_matrix=matrix.tolist()))
    assert (results['intrinsics'] == matrix).all()
    results['intrinsics'][0, 0] = 0
    assert results['map_intrinsics'][0, 0] == results['ori_intrinsics'][0, 0] == 70


def test_file_errors(tmp_path):
    with pytest.raises(ValueError, match=r"one of .*'albedo'\], got 'normals'"):
        LoadDenseAnnotations(fields=['normals'])
    with pytest.raises(
        ValueError, match=r'normal\.npy: expected size \(6, 5\) like its image'
    ):
        load(tmp_path, 'normal', np.ones((4, 4, 3)))
    with pytest.raises(ValueError, match=r'\(6, 5\).* 1 channels, got \(6, 5, 2\)'):
        load(tmp_path, 'depth', np.ones((6, 5, 2)))
    with pytest.raises(ValueError, match=r"holds \['a', 'b'\], expected 'depth'"):
        arrays = dict(a=np.ones(SIZE), b=np.ones(SIZE))
        load(tmp_path, 'depth', arrays, '.npz')
    with pytest.raises(ValueError, match=r'depth\.npz: it holds \[\], expected'):
        load(tmp_path, 'depth', {}, '.npz')
    with pytest.raises(ValueError, match='no depth_path; give the dataset'):
        LoadDenseAnnotations(fields=['depth'])(dict(ori_shape=SIZE))
    with pytest.raises(ValueError, match='with_camera=True'):
        LoadDenseAnnotations(fields=[], with_camera=True)(dict(ori_shape=SIZE))
    with pytest.raises(FileNotFoundError):
        LoadDenseAnnotations(fields=['depth'])(
            dict(ori_shape=SIZE, depth_path=str(tmp_path / 'absent.npy'))
        )


@pytest.mark.parametrize('name', ['cut.npy', 'cut.npz', 'cut.png', 'text.npy'])
def test_damaged_files_are_named(name, tmp_path):
    path = tmp_path / name
    if name == 'text.npy':
        path.write_text('hello')
    else:
        values = np.random.default_rng(0).integers(0, 60000, (40, 40), dtype=np.uint16)
        writers = {
            'npy': lambda: np.save(path, values),
            'npz': lambda: np.savez(path, depth=values),
            'png': lambda: cv2.imwrite(str(path), values),
        }
        writers[path.suffix[1:]]()
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
    results = dict(ori_shape=(40, 40), depth_path=str(path), depth_scale=1.0)
    with pytest.raises(ValueError, match=f'cannot read depth .*{name}'):
        LoadDenseAnnotations(fields=['depth'])(results)


@pytest.mark.parametrize(
    'field, array, message',
    [
        ('depth', np.full(SIZE, 9, np.uint8), 'integers of 16 bits, got uint8'),
        ('normal', np.full((*SIZE, 3), 9), 'float or unsigned .* got int64'),
        ('albedo', np.full((*SIZE, 3), 9), 'float or unsigned .* got int64'),
        ('albedo', np.full((*SIZE, 3), 255.0), r'in \[0, 1\], got .* 255 to 255'),
        ('albedo', np.full((*SIZE, 3), -0.5), r'in \[0, 1\], got .* -0.5 to -0.5'),
    ],
)
def test_other_types_and_ranges_are_refused(field, array, message, tmp_path):
    with pytest.raises(ValueError, match=rf'{field}\.npy: expected .*{message}'):
        load(tmp_path, field, array, depth_scale=1e-3)


@pytest.mark.parametrize('dtype', ['float16', 'float32', 'float64'])
def test_floats_of_any_width(dtype, tmp_path):
    depth = np.arange(1, 31, dtype=dtype).reshape(SIZE) / 8
    results = load(tmp_path, 'depth', depth)
    assert results['gt_depth'].dtype == np.float32
    assert (results['gt_depth'] == depth).all() and results['gt_mask'].all()


def test_excluded_parts_leave_the_mask(tmp_path):
    parts = np.array([[0, 2], [3, 5], [27, 1]], np.uint8)  # a cell is 2 x 2.5 pixels
    path = tmp_path / 'a_seg.npy'
    np.save(path, parts)
    results = dict(ori_shape=SIZE, img_path='a.jpg', parts_path=str(path))
    step = LoadDenseAnnotations(fields=[], excluded_parts=(2, 3, *range(23, 28)))
    mask = step(results.copy())['gt_mask']
    expected = np.array([[1, 0], [0, 1], [0, 1]], bool).repeat(2, 0)
    assert (mask == expected[:, [0, 0, 1, 1, 1]]).all()
    assert LoadDenseAnnotations(fields=[])(results.copy())['gt_mask'].all()
    np.save(path, parts.astype(np.float32))
    with pytest.raises(ValueError, match=r'a_seg\.npy: expected part ids.*float32'):
        step(results.copy())
    with pytest.raises(ValueError, match=r'no parts_path; .* with_parts=True'):
        step(dict(ori_shape=SIZE))


def test_pickles_are_refused(tmp_path):
    path = tmp_path / 'evil.npy'
    np.save(path, np.array([{'a': 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match='cannot read depth'):
        LoadDenseAnnotations(fields=['depth'])(
            dict(ori_shape=SIZE, depth_path=str(path))
        )


@pytest.mark.parametrize('name', ['cam.txt', 'short.txt'])
def test_wrong_camera_files(name, tmp_path):
    path = tmp_path / name
    path.write_text('1 2 x' if name == 'cam.txt' else '1 2 3')
    step = LoadDenseAnnotations(fields=[], with_camera=True)
    with pytest.raises(ValueError, match=name):
        step(dict(ori_shape=SIZE, intrinsics_path=str(path)))


@pytest.mark.parametrize('focal', [0, -5, np.nan, 0.2])  # the last is normalized
def test_wrong_focal_lengths(focal):
    matrix = [[focal, 0, 2], [0, 70, 3], [0, 0, 1]]
    step = LoadDenseAnnotations(fields=[], with_camera=True)
    with pytest.raises(ValueError, match=r'camera of a\.jpg: expected focal lengths'):
        step(dict(ori_shape=SIZE, img_path='a.jpg', camera_matrix=matrix))
