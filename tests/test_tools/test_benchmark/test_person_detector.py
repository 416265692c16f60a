import json
import runpy

import cv2
import numpy as np
import pytest


@pytest.fixture(scope='module')
def script(repo_dir):
    return runpy.run_path(str(repo_dir / 'tools/benchmark/person_detector.py'))


class Fixed:
    name, score_thr = 'fixed', 0.5

    def __init__(self, *answers):
        self.answers = iter(answers)

    def __call__(self, image):
        return np.reshape(np.float32(next(self.answers)), (-1, 5))


def test_recall_and_precision(script, tmp_path):
    """Five people of two pictures, three found; one box twice, one wrong."""
    truth = [
        [[0, 0, 10, 20], [20, 0, 30, 30], [50, 0, 20, 80]],
        [[0, 0, 10, 24], [30, 30, 10, 24]],
    ]
    found = [
        [[20, 0, 50, 30, 0.9], [20, 0, 50, 16, 0.8], [50, 0, 70, 79, 0.7]],
        [[0, 0, 10, 24, 0.9], [30, 50, 40, 70, 0.8]],
    ]
    images = [dict(id=i, file_name=f'{i}.png') for i in range(2)]
    annotations = [dict(image_id=i, bbox=b) for i in range(2) for b in truth[i]]
    annotations.append(dict(image_id=1, bbox=[0, 0, 99, 99], iscrowd=1))
    for image in images:
        cv2.imwrite(str(tmp_path / image['file_name']), np.zeros((100, 100), np.uint8))
    file = tmp_path / 'people.json'
    file.write_text(json.dumps(dict(images=images, annotations=annotations)))
    lines = script['evaluate'](Fixed(*found), script['annotated'](file, tmp_path))
    assert lines[:-1] == [
        'fixed, score from 0.5, 2 pictures',
        'small     recall 0.33 of 3 people',
        'medium    recall 1.00 of 1 people',
        'large     recall 1.00 of 1 people',
        'all       recall 0.60 of 5 people',
        '          precision 0.60 of 5 boxes',
    ]
    assert lines[-1].endswith(' ms per picture')


def test_scenes_of_renders(script, data_dir, monkeypatch, capsys):
    """Each box holds a person, and the scenes are the same each time."""
    renders = data_dir / 'synthetic_humans'
    scenes, again = (list(script['composed'](renders, 4)) for _ in range(2))
    assert sum(len(boxes) for _, boxes in scenes) > 4
    for (image, boxes), (same, known) in zip(scenes, again, strict=True):
        assert image.shape == (640, 960, 3) and np.array_equal(image, same)
        assert np.array_equal(boxes, known)
        assert (boxes[:, 2:] - boxes[:, :2] > 20).all()
        assert (boxes >= 0).all() and (boxes <= [960, 640, 960, 640]).all()
    perfect = Fixed(*(np.insert(boxes, 4, 1, axis=1) for _, boxes in scenes))
    lines = script['evaluate'](perfect, scenes)
    assert 'precision 1.00' in lines[-2] and 'recall 1.00' in lines[-3]
    args = ['', '--renders', str(renders), '--scenes', '2', '--det-thr', '0.3']
    monkeypatch.setattr('sys.argv', args)
    script['main']()
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == 'MoveNet MultiPose, score from 0.3, 2 pictures'
