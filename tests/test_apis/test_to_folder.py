import json
import os
import threading

import numpy as np
import pytest
from PIL import Image
from plyfile import PlyData

from sapiens2_mm.apis import predict_to_folder, writers


@pytest.fixture
def photos(data_dir, tmp_path):
    """Two good pictures of one name, a cut one, text, a dead link and a folder."""
    folder = tmp_path / 'тест é'
    folder.mkdir()
    data = (data_dir / 'synthetic_humans/rgb/000000.jpg').read_bytes()
    (folder / '人 1.jpg').write_bytes(data)
    Image.open(folder / '人 1.jpg').save(folder / '人 1.PNG')
    (folder / 'cut.jpg').write_bytes(data[: len(data) // 2])
    (folder / 'text.jpg').write_text('text')
    os.symlink(folder / 'gone.jpg', folder / 'link.jpg')
    (folder / 'album.png').mkdir()
    (folder / 'notes.txt').write_text('text')
    return folder


def load(path):
    """Strict JSON."""

    def refuse(text):
        raise AssertionError(text)

    return json.loads(path.read_text(encoding='utf-8'), parse_constant=refuse)


def test_every_input_has_files_or_a_reason(make, photos, tmp_path, log):
    out = tmp_path / 'aus gabe'
    summary = predict_to_folder(make('seg', 'normal'), photos, out, batch_size=2)
    assert summary.done == 2
    assert [os.path.basename(path) for path in summary.failures] == [
        *('cut.jpg', 'link.jpg', 'text.jpg'),
    ]
    assert summary.left_out == ['album.png', 'notes.txt']
    assert '2 pictures in ' in log.text and '3 without a result' in log.text
    for path, reason in summary.failures.items():
        assert f'no result: {path}: {reason}' in log.text
    for task in ('seg', 'normal'):
        content = load(out / task / 'predictions.json')
        assert content['failures'] == summary.failures
        assert content['left_out'] == summary.left_out
        names = [os.path.basename(r['image']) for r in content['images']]
        assert names == ['人 1.PNG', '人 1.jpg']
        listed = [name for r in content['images'] for name in r['files']]
        assert {*listed, 'predictions.json'} == {*os.listdir(out / task)}
        assert len(listed) == len({*listed})
    normal = np.load(out / 'normal' / '人 1.npz')['normal']
    assert normal.shape == (3, 384, 288) and normal.dtype == np.float32
    assert np.abs(np.linalg.norm(normal, axis=0) - 1).max() < 1e-3
    assert Image.open(out / 'normal' / '人 1.png').size == (2 * 288, 384)


def test_label_images_hold_ids_and_colors(make, photos, tmp_path):
    predict_to_folder(make('seg'), photos / '人 1.PNG', tmp_path)
    labels = np.load(tmp_path / 'seg' / '人 1.npz')['labels']
    (result,) = make('seg')['seg'](photos / '人 1.PNG')
    assert labels.dtype == np.uint8 and np.array_equal(labels, result.labels)
    image = Image.open(tmp_path / 'seg' / '人 1_labels.png')
    assert np.array_equal(np.asarray(image), labels)
    palette = np.array(make('seg')['seg'].task.meta['palette'])
    assert np.array_equal(np.asarray(image.convert('RGB')), palette[labels])
    (record,) = load(tmp_path / 'seg' / 'predictions.json')['images']
    assert sum(record['pixels'].values()) == labels.size == 384 * 288


@pytest.mark.parametrize('names', [['x.png', 'x_labels.png'], ['A.png', 'a.png']])
def test_no_output_overwrites_another(make, tmp_path, names):
    """Not even on file systems that do not tell capitals apart."""
    for name in names:
        Image.new('RGB', (8, 8)).save(tmp_path / name)
    predict_to_folder(make('seg'), tmp_path, tmp_path / 'out')
    written = os.listdir(tmp_path / 'out' / 'seg')
    assert len(written) == len({name.lower() for name in written}) == 7


def test_no_output_overwrites_an_input(make, tmp_path):
    """With the pictures in the very folder of the results."""
    folder = tmp_path / 'normal'
    folder.mkdir()
    before = {}
    for name in ('a.png', 'a_1.png', 'b.png'):
        Image.fromarray(np.full((8, 8, 3), len(name), np.uint8)).save(folder / name)
        before[name] = (folder / name).read_bytes()
    predict_to_folder(make('normal'), folder, tmp_path)
    for name, data in before.items():
        assert (folder / name).read_bytes() == data
    records = load(folder / 'predictions.json')['images']
    pictures = [r['files'][0] for r in records]
    assert pictures == ['a_2.png', 'a_1_1.png', 'b_1.png']
    boxes = tmp_path / 'pose' / 'coco.json'
    boxes.parent.mkdir()
    boxes.write_text('{"images": [], "annotations": []}')
    with pytest.raises(ValueError, match='is an input; choose another folder'):
        predict_to_folder(make('pose'), folder / 'b.png', tmp_path, boxes=boxes)
    assert boxes.read_text() == '{"images": [], "annotations": []}'


def test_people_in_json_and_coco_form(make, photos, tmp_path):
    people = [[20, 30, 100, 200], [50.5, 60, -5, 240], [50.5, 60, 120, 240]]
    annotations = [dict(image_id=7, bbox=box) for box in people]
    images = [dict(id=7, file_name='тест é/人 1.PNG'), dict(id=8, file_name='人 2.jpg')]
    boxes = tmp_path / 'boxes.json'
    boxes.write_text(json.dumps(dict(images=images, annotations=annotations)))
    inputs = [photos / '人 1.PNG', photos / '人 1.jpg']
    save = ('json', 'coco', 'npz')
    summary = predict_to_folder(make('pose'), inputs, tmp_path, save=save, boxes=boxes)
    assert summary.done == 2 and not summary.failures
    content = load(tmp_path / 'pose' / 'predictions.json')
    assert content['box_format'] == 'xyxy' and len(content['keypoint_names']) == 308
    two, nobody = content['images']
    assert nobody['instances'] == []  # it has the other ending
    assert (two['height'], two['width'], two['boxes_from']) == (384, 288, str(boxes))
    assert len(two['skipped_boxes']) == 1 and 'box 1 = ' in two['skipped_boxes'][0]
    assert [person['bbox_score'] for person in two['instances']] == [1, 1]
    assert summary.people == 2 and summary.nobody == [str(inputs[1])]
    assert [person['bbox'] for person in two['instances']] == [
        [20, 30, 120, 230],
        [50.5, 60, 170.5, 300],
    ]
    coco = load(tmp_path / 'pose' / 'coco.json')
    arrays = np.load(tmp_path / 'pose' / '人 1.npz')
    for number, found in enumerate(coco):
        assert found['image_id'] == 7 and found['category_id'] == 1
        points = np.reshape(found['keypoints'], (308, 3))
        person = two['instances'][number]
        assert np.array_equal(points[:, :2], person['keypoints'])
        assert np.array_equal(points[:, :2], arrays['keypoints'][number])
        assert np.array_equal(points[:, 2], person['keypoint_scores'])
    assert coco[1]['bbox'] == [50.5, 60, 120, 240] and len(coco) == 2


@pytest.fixture
def two_people(photos, tmp_path):
    """``boxes`` of two people in ``人 1.PNG``."""
    annotations = [
        dict(image_id=7, bbox=box) for box in ([20, 30, 100, 200], [50, 60, 120, 240])
    ]
    content = dict(images=[dict(id=7, file_name='人 1.PNG')], annotations=annotations)
    path = tmp_path / 'boxes.json'
    path.write_text(json.dumps(content))
    return path


def test_openpose_files(make, photos, two_people, tmp_path, log):
    predict_to_folder(
        make('pose'),
        photos / '人 1.PNG',
        tmp_path,
        save=('json', 'png', 'npz'),
        boxes=two_people,
        keypoints='openpose',
    )
    picture = load(tmp_path / 'pose' / '人 1_keypoints.json')
    arrays = np.load(tmp_path / 'pose' / '人 1.npz')
    assert arrays['keypoints'].shape == (2, 137, 2)
    sizes = dict(pose=25, face=70, hand_left=21, hand_right=21)
    for number, person in enumerate(picture['people']):
        parts = [person[f'{part}_keypoints_2d'] for part in sizes]
        assert [len(part) for part in parts] == [3 * n for n in sizes.values()]
        points = np.concatenate(parts).reshape(137, 3)
        np.testing.assert_array_equal(
            points[:, :2], np.nan_to_num(arrays['keypoints'][number])
        )
        np.testing.assert_array_equal(points[:, 2], arrays['keypoint_scores'][number])
        assert points[25:33].max() == 0 < points[33, 2]  # of the jaw only the chin
    assert len(picture['people']) == 2
    content = load(tmp_path / 'pose' / 'predictions.json')
    assert content['keypoint_set'] == 'openpose'
    assert ['Neck', 'derived', 'left_shoulder', 'right_shoulder'] in (
        content['keypoints_from']
    )
    (record,) = content['images']
    assert 'not_finite' not in record
    assert record['instances'][0]['keypoints'][25] == [None, None]
    assert record['files'] == ['人 1_keypoints.json', '人 1.png', '人 1.npz']
    assert 'openpose: 16 of 137 keypoints are absent (score 0): face-0' in log.text


@pytest.mark.parametrize(('keypoints', 'count'), [('coco-wholebody', 133), (None, 308)])
def test_coco_results_with_their_category(
    make, photos, two_people, tmp_path, keypoints, count
):
    predict_to_folder(
        make('pose'),
        photos / '人 1.PNG',
        tmp_path,
        save=['coco', 'npz'],
        boxes=two_people,
        keypoints=keypoints,
    )
    points = np.nan_to_num(np.load(tmp_path / 'pose' / '人 1.npz')['keypoints'])
    people = load(tmp_path / 'pose' / 'coco.json')
    (category,) = load(tmp_path / 'pose' / 'coco_categories.json')
    fields = [key for key, value in category.items() if isinstance(value, list)]
    fields.remove('skeleton')
    assert fields == (
        ['keypoints', 'foot_kpts', 'face_kpts', 'lefthand_kpts', 'righthand_kpts']
        if keypoints
        else ['keypoints']
    )
    assert sum(len(category[field]) for field in fields) == count
    named = [category['keypoints'][i - 1] for i in category['skeleton'][0]]
    assert named == ['left_ankle', 'left_knee']
    for number, person in enumerate(people):
        found = np.concatenate([person[f] for f in fields]).reshape(count, 3)
        np.testing.assert_array_equal(found[:, :2], points[number])
        present = found[found[:, 2] > 0, 2]
        assert person['score'] == pytest.approx(present.mean(), rel=1e-5)
        assert person['category_id'] == category['id'] == 1
    assert len(people) == 2


def test_numbers_that_are_not_finite_become_null(make, photos, tmp_path, monkeypatch):
    inferencers = make('pose')
    task = inferencers['pose'].task
    result_of = task.result

    def result(job, outputs):
        found = result_of(job, outputs)
        found.keypoint_scores[0, :2] = np.nan
        found.keypoints[0, 5, 1] = np.inf
        return found

    monkeypatch.setattr(task, 'result', result)
    path = photos / '人 1.PNG'
    save = ('json', 'png', 'coco')
    predict_to_folder(inferencers, path, tmp_path, save=save, whole_image=True)
    (record,) = load(tmp_path / 'pose' / 'predictions.json')['images']
    (person,) = record['instances']
    assert person['keypoint_scores'][:2] == [None, None]
    assert person['keypoints'][5][1] is None
    assert record['not_finite'].startswith('3 numbers')
    assert load(tmp_path / 'pose' / 'coco.json') == []


def test_point_clouds(make, photos, tmp_path, monkeypatch):
    path = photos / '人 1.PNG'
    predict_to_folder(make('pointmap'), path, tmp_path, save=['ply'])
    assert os.listdir(tmp_path / 'pointmap') == ['人 1.ply']
    vertex = PlyData.read(str(tmp_path / 'pointmap' / '人 1.ply'))['vertex']
    assert len(vertex) == 384 * 288 and vertex['red'].dtype == np.uint8
    monkeypatch.setattr('sapiens2_mm.apis.to_folder.find_spec', lambda name: None)
    with pytest.raises(ImportError, match=r'needs plyfile; install sapiens2_mm\[demo'):
        predict_to_folder(make('pointmap'), path, tmp_path / 'out', save=['ply'])
    assert not (tmp_path / 'out').exists()


def test_what_cannot_be_saved_is_said_first(make, photos, tmp_path):
    for kind in ('ply', 'coco', 'jpg'):
        with pytest.raises(ValueError, match=rf"cannot save \['{kind}'\].*'normal'"):
            predict_to_folder(
                make('normal'), photos, tmp_path / 'out', save=['json', kind]
            )
    with pytest.raises(ValueError, match="keypoints='coco' needs a pose model"):
        predict_to_folder(make('seg'), photos, tmp_path / 'out', keypoints='coco')
    for nothing in (photos / 'album.png', f'{photos}/*.tif'):
        with pytest.raises(FileNotFoundError, match='no file'):
            predict_to_folder(make('normal'), nothing, tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


def test_an_interrupted_run_leaves_complete_files(make, photos, tmp_path, monkeypatch):
    """Ctrl-C while the second picture is written."""
    write_npz = writers.write_npz

    def stopped(path, **arrays):
        if path.name == '人 1_1.npz':
            raise KeyboardInterrupt
        write_npz(path, **arrays)

    monkeypatch.setattr(writers, 'write_npz', stopped)
    inputs = [photos / '人 1.PNG', photos / '人 1.jpg', photos / 'text.jpg']
    with pytest.raises(KeyboardInterrupt):
        predict_to_folder(make('normal'), inputs, tmp_path)
    (record,) = load(tmp_path / 'normal' / 'predictions.json')['images']
    assert record['files'] == ['人 1.png', '人 1.npz']
    assert not [name for name in os.listdir(tmp_path / 'normal') if '.tmp' in name]
    np.load(tmp_path / 'normal' / '人 1.npz')['normal']


def test_pictures_are_written_at_once_and_listed_in_order(make, tmp_path, monkeypatch):
    """The first one waits until the second one is written."""
    write_npz, second = writers.write_npz, threading.Event()

    def slow(path, **arrays):
        if path.stem == 'input_0':
            assert second.wait(60)
        write_npz(path, **arrays)
        if path.stem == 'input_1':
            second.set()

    monkeypatch.setattr(writers, 'write_npz', slow)
    images = [np.full((20, 10, 3), 50 * i, np.uint8) for i in range(4)]
    save = ['npz', 'json', 'coco']
    predict_to_folder(make('pose'), images, tmp_path, save=save, whole_image=True)
    names = [f'input_{number}' for number in range(4)]
    records = load(tmp_path / 'pose' / 'predictions.json')['images']
    assert [record['files'] for record in records] == [[f'{n}.npz'] for n in names]
    found = load(tmp_path / 'pose' / 'coco.json')
    assert [person['image_id'] for person in found] == names


def test_arrays_have_names_too(make, tmp_path):
    images = [np.zeros((20, 10, 3), np.uint8)] * 2
    predict_to_folder(make('normal'), images, tmp_path, save=['png'])
    assert sorted(os.listdir(tmp_path / 'normal')) == ['input_0.png', 'input_1.png']
