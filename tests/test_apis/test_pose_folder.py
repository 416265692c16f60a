import json

import numpy as np
import pytest
from PIL import Image

pytest.importorskip('mmpose')

from sapiens2_mm.apis import inference_pose, init_model
from sapiens2_mm.apis.pose_folder import keypoints_to_folder

CONFIG = 'configs/pose/sapiens2-tiny_udp-heatmap_1xb8_synthetic-humans-256x192.py'


@pytest.fixture(scope='module')
def model(repo_dir):
    return init_model(repo_dir / CONFIG)


@pytest.fixture
def pictures(data_dir, tmp_path):
    """A picture with two people, one without, and one that is cut in half."""
    folder = tmp_path / 'тест é'
    folder.mkdir()
    data = (data_dir / 'synthetic_humans/rgb/000000.jpg').read_bytes()
    (folder / '人 1.jpg').write_bytes(data)
    (folder / 'b.jpg').write_bytes(data)
    (folder / 'cut.jpg').write_bytes(data[: len(data) // 2])
    return folder


@pytest.fixture
def boxes(tmp_path):
    people = ([20, 30, 100, 200], [50.5, 60, 120, 240])
    annotations = [
        dict(id=i, image_id='a', bbox=box, category_id=1)
        for i, box in enumerate(people)
    ]
    annotations.append(dict(id=9, image_id='a', bbox=[0, 0, 5, 5], iscrowd=1))
    images = [dict(id='a', file_name='rgb/人 1.jpg'), dict(id='b', file_name='b.jpg')]
    path = tmp_path / 'boxes.json'
    path.write_text(json.dumps(dict(images=images, annotations=annotations)))
    return path


def test_people_of_a_folder(model, pictures, boxes, tmp_path):
    out = tmp_path / 'out ü'
    failures = keypoints_to_folder(model, pictures, out, boxes)
    assert list(failures) == [str(pictures / 'cut.jpg')]
    result = json.loads((out / 'predictions.json').read_text())
    assert result['box_format'] == 'xyxy'
    assert len(result['keypoint_names']) == 308
    nobody, two = result['images']
    assert nobody['instances'] == []
    assert (two['height'], two['width']) == (384, 288)
    assert [person['bbox'] for person in two['instances']] == [
        [20, 30, 120, 230],
        [50.5, 60, 170.5, 300],
    ]
    expected = inference_pose(model, pictures / '人 1.jpg', [[20, 30, 120, 230]])[0]
    first = two['instances'][0]
    np.testing.assert_allclose(
        first['keypoints'], expected.pred_instances.keypoints[0], atol=1e-3
    )
    assert len(first['keypoint_scores']) == 308
    for name in ('人 1.png', 'b.png'):
        assert Image.open(out / name).size == (288, 384)


def test_whole_picture_without_boxes(model, pictures, tmp_path):
    keypoints_to_folder(model, pictures / 'b.jpg', tmp_path)
    (record,) = json.loads((tmp_path / 'predictions.json').read_text())['images']
    assert record['boxes_from'] == 'whole picture'
    assert record['instances'][0]['bbox'] == [0, 0, 288, 384]


def test_file_that_holds_no_boxes(model, pictures, tmp_path):
    path = tmp_path / 'other.json'
    path.write_text('[]')
    with pytest.raises(ValueError, match=r'expected an object, got \[\]'):
        keypoints_to_folder(model, pictures, tmp_path, path)


@pytest.mark.parametrize(
    'images, annotations, message',
    [
        ([1], [], 'image 0: expected an object'),
        ([dict(id=1)], [], 'image 0: file_name must be a string, got nothing'),
        (
            [],
            [dict(bbox=[0, 0, 9, 9])],
            'annotation 0: image_id must be a number or a string',
        ),
        ([], [dict(image_id=7, bbox=[0, 0, 9, 9])], 'image_id 7 is not an image'),
        (
            [],
            [dict(image_id=[7], bbox=[])],
            'image_id must be a number or a string, got [[]7',
        ),
    ],
)
def test_faulty_boxes_name_the_entry(
    model, pictures, tmp_path, images, annotations, message
):
    path = tmp_path / 'boxes.json'
    path.write_text(json.dumps(dict(images=images, annotations=annotations)))
    with pytest.raises(ValueError, match=message):
        keypoints_to_folder(model, pictures, tmp_path, path)
    path.write_text(path.read_text()[:-5])
    with pytest.raises(ValueError, match=r'boxes\.json is not a readable JSON file'):
        keypoints_to_folder(model, pictures, tmp_path, path)
