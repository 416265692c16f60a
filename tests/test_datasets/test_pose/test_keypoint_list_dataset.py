import json

import cv2
import numpy as np
import pytest
from PIL import Image

pytest.importorskip('mmpose')

from sapiens2_mm.datasets import Sapiens2KeypointListDataset


@pytest.fixture
def store(tmp_path):
    """Writes one sample after the other; returns its entry of the list."""
    (tmp_path / 'images').mkdir()
    (tmp_path / 'keypoints').mkdir()

    def add(name, points, gray=False, suffix='.json', **entry):
        noise = np.random.default_rng(0).integers(0, 255, (64, 48, 3), dtype=np.uint8)
        image = noise[..., 0] if gray else noise
        cv2.imwrite(str(tmp_path / f'images/{name}.png'), image)
        path = tmp_path / f'keypoints/{name}{suffix}'
        if suffix == '.npy':
            np.save(path, np.asarray(points))
        else:
            path.write_text(json.dumps(np.asarray(points).tolist()))
        return {'sample_id': name, **entry}

    return add


def build(folder, samples, **kwargs):
    (folder / 'list.json').write_text(json.dumps(samples))
    return Sapiens2KeypointListDataset(
        ann_file='list.json', data_root=str(folder), img_suffix='.png', **kwargs
    )


def full(count=344):
    """Points on a diagonal inside the image, confidence 1."""
    return np.stack(
        [np.linspace(1, 47, count), np.linspace(1, 63, count), np.ones(count)]
    )


def test_teeth_are_removed_and_the_box_is_the_extent(store, tmp_path):
    points = full()
    points[2, 10] = 0
    points[0, 11] = 48  # not strictly inside
    dataset = build(tmp_path, [store('a', points), store('b', points, suffix='.npy')])
    assert len(dataset) == 2
    sample = dataset[0]
    expected = np.delete(points[:2], np.arange(220, 256), axis=1).T
    np.testing.assert_allclose(sample['keypoints'][0], expected, rtol=1e-6)
    hidden = np.flatnonzero(sample['keypoints_visible'][0] == 0)
    assert hidden.tolist() == [10, 11]
    np.testing.assert_allclose(sample['bbox'], [[1, 1, 47, 63]], rtol=1e-6)
    np.testing.assert_array_equal(dataset[1]['keypoints'], sample['keypoints'])


def test_selection_rules(store, tmp_path):
    few, no_body = full(), full()
    few[2, 7:] = 0
    no_body[2, 5:21] = 0
    samples = [
        store('few', few),
        store('no_body', no_body),
        store('gray', full(), gray=True),
        store('good', full()),
    ]
    dataset = build(tmp_path, samples)
    assert [sample['img_id'] for sample in dataset] == ['good']
    for part in ('fewer than 8 visible', 'fewer than 6 of the first 21', 'grayscale'):
        assert f'1 {part}' in dataset._read_summary or part in dataset._read_summary


def test_several_persons(store, tmp_path):
    first, second = full(70), full(344)
    second[2, 3:] = 0
    path = tmp_path / 'keypoints/crowd.json'
    samples = [store('crowd', np.zeros(1), gray=True, person_id=i) for i in (0, 1)]
    path.write_text(json.dumps([first.tolist(), second.tolist()]))
    dataset = build(tmp_path, samples)
    assert [int(s['keypoints_visible'].sum()) for s in dataset] == [70, 3]
    assert dataset[0]['keypoints_visible'][0, 70:].sum() == 0


def test_faults(store, tmp_path):
    with pytest.raises(ValueError, match='sample 0 has no sample_id'):
        build(tmp_path, [dict(id=3)])
    sample = store('a', full(300))
    with pytest.raises(ValueError, match=r'expected 3 x 344 numbers.*\(3, 300\)'):
        build(tmp_path, [sample])
    with pytest.raises(
        ValueError, match=r'person_id 7: expected 3 x 70 .*KeyError\(7\)'
    ):
        build(tmp_path, [{**sample, 'person_id': 7}])
    with pytest.raises(ValueError, match=r"person_id '0': expected .*KeyError\('0'\)"):
        build(tmp_path, [{**sample, 'person_id': '0'}])
    with pytest.raises(ValueError, match=r"sample 0: expected an object, got 'a'"):
        build(tmp_path, ['a'])
    file = tmp_path / 'keypoints/a.json'
    for text, message in [
        ('[[1, 2], [3', 'a.json is not a readable JSON file'),
        ('[[1, "x"]]', 'a.json: person_id None: expected 3 x 344 numbers'),
    ]:
        file.write_text(text)
        with pytest.raises(ValueError, match=message):
            build(tmp_path, [sample])
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"keypoints/a\.json' does not exist"):
        build(tmp_path, [sample])
    with pytest.raises(ValueError, match=r'list\.json: sample: expected a list'):
        build(tmp_path, dict(images=[]))
    with pytest.raises(ValueError, match='for training'):
        build(tmp_path, [], test_mode=True)
    with pytest.raises(ValueError, match='no person is left'):
        build(tmp_path, [])


def test_airstore_id(store, tmp_path):
    entry = store('a', full())
    entry['airstore_id'] = entry.pop('sample_id')
    assert build(tmp_path, [entry])[0]['img_id'] == 'a'


def test_points_belong_to_the_upright_picture(store, tmp_path):
    sample = store('a', full()[[1, 0, 2]])  # on an upright picture of 48 x 64
    path = tmp_path / 'images' / 'a.png'
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.open(path).save(path, exif=exif)
    (loaded,) = build(tmp_path, [sample])
    assert loaded['keypoints_visible'].all()
    np.testing.assert_allclose(loaded['bbox'], [[1, 1, 63, 47]], rtol=1e-6)


def test_no_picture(store, tmp_path):
    sample = store('a', full())
    (tmp_path / 'images' / 'a.png').write_text('<html>')
    with pytest.raises(ValueError, match=r'cannot read image .*a\.png'):
        build(tmp_path, [sample])
