import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from PIL import Image

from sapiens2_mm.apis import init_model
from sapiens2_mm.apis.to_folder import Summary

pytest.importorskip('mmpose')
pytest.importorskip('mmseg')


@pytest.fixture(scope='module')
def models(repo_dir, tmp_path_factory):
    """``--model CONFIG CHECKPOINT`` of two tiny models."""
    folder = tmp_path_factory.mktemp('models')
    arguments = {}
    for task in ('pose', 'seg'):
        (path,) = (repo_dir / 'configs' / task).glob('*tiny*_synthetic-humans-*.py')
        checkpoint = folder / f'{task}.pth'
        torch.save(dict(state_dict=init_model(path).state_dict()), checkpoint)
        arguments[task] = ['--model', path, checkpoint]
    return arguments


@pytest.fixture
def demo(repo_dir, tmp_path, monkeypatch):
    """Runs ``tools/demo.py`` in this process; returns the exit code."""
    path = repo_dir / 'tools' / 'demo.py'
    spec = importlib.util.spec_from_file_location('demo', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(tmp_path)

    def demo(*arguments):
        monkeypatch.setattr(sys, 'argv', ['demo.py', *map(str, arguments)])
        try:
            return module.main()
        except SystemExit as stop:
            return stop.code

    demo.module = module
    return demo


@pytest.fixture
def photos(data_dir, tmp_path):
    folder = tmp_path / 'photos'
    folder.mkdir()
    data = (data_dir / 'synthetic_humans/rgb/000000.jpg').read_bytes()
    (folder / 'a.b.JPG').write_bytes(data)
    return folder


def test_several_models(demo, models, photos, tmp_path):
    both = [*models['pose'], *models['seg'], *models['seg'], '--whole-image']
    assert demo('photos', *both, '--keypoints', 'coco') == 0
    people = (tmp_path / 'outputs' / 'pose' / 'predictions.json').read_text()
    assert '"keypoint_set": "coco"' in people
    assert sorted(os.listdir(tmp_path / 'outputs')) == ['pose', 'seg', 'seg_2']
    assert sorted(os.listdir(tmp_path / 'outputs' / 'seg_2')) == [
        *('a.b.npz', 'a.b.png', 'a.b_labels.png', 'predictions.json'),
    ]


def test_options_of_videos(demo, models, monkeypatch):
    seen = []

    def predict(inferencers, inputs, out_dir, **options):
        seen.append((inputs, options['track'], options['smooth']))
        return Summary()

    monkeypatch.setattr(demo.module, 'predict_to_folder', predict)
    for arguments in (['0', '--smooth'], ['x.mp4', '--no-track']):
        assert demo(*arguments, *models['seg']) == 0
    assert seen == [(0, None, True), ('x.mp4', False, False)]


def people_found(tmp_path):
    (picture,) = json.loads(
        (tmp_path / 'outputs/pose/predictions.json').read_text(encoding='utf-8')
    )['images']
    return picture['boxes_from'], picture['instances']


def test_people_are_found_without_boxes(demo, models, photos, tmp_path, log):
    assert demo('photos', *models['pose'], '--save', 'json') == 0
    name, (person,) = people_found(tmp_path)
    assert name == 'MoveNet MultiPose' and 0.2 < person['bbox_score'] < 1
    left, top, right, bottom = person['bbox']
    assert 0 <= left < right <= 288 and 0 <= top < bottom <= 384
    assert 'no boxes were given: MoveNet MultiPose finds the people' in log.text
    assert '; 1 people' in log.text and 'nobody' not in log.text
    assert demo('photos', *models['pose'], '--save', 'json', '--det-thr', '0.9') == 0
    assert people_found(tmp_path) == (name, [])
    assert '; 0 people; nobody in 1, such as [' in log.text


@pytest.mark.slow
def test_bad_picture_and_exit_code(repo_dir, models, photos, tmp_path):
    (photos / 'bad.png').write_text('text')
    done = subprocess.run(
        [sys.executable, repo_dir / 'tools/demo.py', 'photos', *models['seg']],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    assert 'bad.png' in done.stdout + done.stderr
    assert (tmp_path / 'outputs' / 'seg' / 'a.b.npz').exists()


def test_wrong_arguments_are_one_line(demo, models, photos, capsys):
    for arguments, message in (
        ([], 'give --task or --model'),
        (['--model', 'a', 'b', 'c'], '--model takes a name, or CONFIG CHECKPOINT'),
        (['--model', 'sapiens2-7b_seg'], 'is neither a config file nor the name'),
        (['--task', 'smell,seg'], "'sapiens2-1b_smell' is neither"),
        ([*models['seg'], '--save', 'gif'], "cannot save ['gif']"),
        ([*models['pose'], '--whole-image', '--boxes', 'a'], 'give either boxes, or'),
        ([*models['pose'], '--whole-image', '--nms-thr', '0.3'], 'are of a detector'),
        ([*models['pose'], '--boxes', 'a', '--det', 'b', 'c'], 'are of a detector'),
        ([*models['pose'], '--det', 'b.py', 'c'], "config 'b.py' does not exist"),
        ([*models['pose'], '--det-thr', '7'], 'score_thr must be in 0..1, got 7'),
        ([*models['seg'], '--det-thr', '0.5'], 'boxes are for pose models'),
        ([*models['seg'], '--out-dir', 'photos/a.b.JPG'], 'photos/a.b.JPG'),
    ):
        assert demo('photos', *arguments) == 2
        error = capsys.readouterr().err
        assert message in error and error.count('\n') == 1


@pytest.mark.slow
def test_ctrl_c_leaves_complete_files_only(repo_dir, models, photos, tmp_path):
    data = (photos / 'a.b.JPG').read_bytes()
    for number in range(300):
        (photos / f'{number}.jpg').write_bytes(data)
    running = subprocess.Popen(
        [sys.executable, repo_dir / 'tools/demo.py', 'photos', *models['seg']],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # a job in the background, this one too, inherits that Ctrl-C does nothing
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    folder = tmp_path / 'outputs' / 'seg'
    while len([*folder.glob('*.npz')]) < 3 and running.poll() is None:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 130, errors
    records = json.loads((folder / 'predictions.json').read_text())['images']
    assert 3 <= len(records) < 301
    listed = {name for record in records for name in record['files']}
    assert {*listed, 'predictions.json'} == {*os.listdir(folder)}
    for name in listed:
        if name.endswith('.npz'):
            assert np.load(folder / name)['labels'].shape == (384, 288)
        else:
            Image.open(folder / name).load()
