"""The runner against the package; the file is played by the model it was made of."""

import importlib.util
import json
import sys
from types import ModuleType, SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config

from sapiens2_mm.apis import Inferencer, init_model
from sapiens2_mm.apis.export import graph_of
from sapiens2_mm.apis.export.metadata import metadata
from sapiens2_mm.apis.inputs import read_picture
from sapiens2_mm.apis.tasks import Job

HOSTS = {'pose': 'mmpose', 'seg': 'mmseg'}
ARCH = dict(embed_dims=32, num_layers=1, num_heads=2, feedforward_channels=64)
BOX = [10, 5, 60, 80]


@pytest.fixture(scope='module')
def picture():
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (12, 10, 3), dtype=np.uint8)
    return cv2.resize(coarse, (300, 330), interpolation=cv2.INTER_CUBIC)


@pytest.fixture
def runner_tool(repo_dir, monkeypatch):
    """The tool with an onnxruntime whose sessions run ``tool.graph``."""

    class InferenceSession:
        def __init__(self, path, providers):
            assert providers == ['CPUExecutionProvider']

        def get_modelmeta(self):
            stored = dict(sapiens2_mm=json.dumps(tool.meta)) if tool.meta else {}
            return SimpleNamespace(custom_metadata_map=stored)

        def run(self, names, inputs):
            with torch.no_grad():
                outputs = tool.graph(torch.from_numpy(inputs['images']))
            return [value.numpy() for value in outputs.values()]

    runtime = ModuleType('onnxruntime')
    runtime.InferenceSession = InferenceSession
    monkeypatch.setitem(sys.modules, 'onnxruntime', runtime)
    spec = importlib.util.spec_from_file_location(
        'onnx_runner', repo_dir / 'tools' / 'onnx_runner.py'
    )
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def put(tool, model, size=(256, 192), dynamic=('batch',), **options):
    """Make a model the one that the tool's sessions run."""
    tool.graph = graph_of(model, **options)
    with torch.no_grad():
        outputs = tool.graph(tool.graph.example(size, 1))
    tool.meta = metadata(tool.graph, outputs, size, dynamic)


@pytest.fixture(scope='module')
def models(repo_dir):
    """Task -> its tiny model with the shipped test pipeline."""
    found = {}

    def make(task):
        if task in HOSTS:
            pytest.importorskip(HOSTS[task])
        if task not in found:
            (path,) = (repo_dir / 'configs' / task).glob('*tiny*_synthetic-humans-*.py')
            cfg = Config.fromfile(path)
            cfg.model.backbone.arch = ARCH
            cfg.model['head' if task == 'pose' else 'decode_head'].in_channels = 32
            torch.manual_seed(0)
            found[task] = init_model(cfg)
            if task == 'pointmap':
                found[task].decode_head.scale_final_layer[-1].bias.data.fill_(2)
        return found[task]

    return make


@pytest.mark.parametrize('order', ['bgr', 'rgb'])
@pytest.mark.parametrize('task', ['pose', 'seg', 'normal', 'pointmap', 'matting'])
def test_finds_what_the_package_finds(task, order, runner_tool, models, picture):
    model = models(task)
    put(runner_tool, model, postprocess=True, channel_order=order)
    results = runner_tool.Runner('model.onnx')(picture, BOX)
    boxes = [[BOX]] if task == 'pose' else None
    (expected,) = Inferencer(model)([picture], boxes=boxes)
    if task == 'pose':
        assert np.abs(results['keypoints'] - expected.keypoints[0]).max() < 1e-3
        scores = expected.keypoint_scores[0]
        assert np.abs(results['keypoint_scores'] - scores).max() < 1e-5
    elif task == 'seg':  # random class ids are all borders: compare before resizing
        assert results['labels'].shape == results['scores'].shape == (330, 300)
        (sample,) = Inferencer(model).task.samples(Job(read_picture(picture)))
        resized = sample['inputs'].permute(1, 2, 0).numpy()
        found = runner_tool.Runner('model.onnx')(np.ascontiguousarray(resized))
        (expected,) = Inferencer(model)([resized])
        assert np.array_equal(found['labels'], expected.labels)
        method = cv2.INTER_NEAREST
        enlarged = cv2.resize(found['labels'], (300, 330), None, 0, 0, method)
        assert np.array_equal(results['labels'], enlarged)
    else:
        assert set(results) == set(expected.maps)
        for name, value in expected.maps.items():
            value = np.moveaxis(value, 0, -1) if value.ndim == 3 else value
            difference = np.abs(results[name] - value.squeeze()).max()
            assert difference < 2e-3, (name, difference)


def test_raw_outputs_and_sizes(runner_tool, models, picture):
    model = models('normal')
    put(runner_tool, model, dynamic=('batch', 'size'))
    runner = runner_tool.Runner('model.onnx', (64, 96))
    assert runner(picture)['raw_normal'].shape == (3, 64, 96)
    with pytest.raises(ValueError, match='multiples of 16'):
        runner_tool.Runner('model.onnx', (64, 90))
    put(runner_tool, model)
    with pytest.raises(
        ValueError, match=r'takes 256 x 192 .*got \(64, 96\); export it'
    ):
        runner_tool.Runner('model.onnx', (64, 96))
    runner_tool.meta = None
    with pytest.raises(ValueError, match='was not written by'):
        runner_tool.Runner('model.onnx')


def test_files_and_exit_code(
    runner_tool, models, picture, tmp_path, monkeypatch, capsys
):
    put(runner_tool, models('pose'), postprocess=True)
    monkeypatch.chdir(tmp_path)
    photo = tmp_path / 'A b.v1.PNG'
    cv2.imencode('.png', picture)[1].tofile(photo)
    (tmp_path / 'text.jpg').write_text('no picture')

    def run(*arguments):
        monkeypatch.setattr(sys, 'argv', ['onnx_runner.py', 'model.onnx', *arguments])
        try:
            return runner_tool.main()
        except SystemExit as stop:
            return stop.code

    assert run(str(photo)) == 2
    assert 'give --box or --whole-image' in capsys.readouterr().err
    assert run(str(photo), str(photo), '--whole-image') == 2
    assert run('text.jpg', 'absent.jpg', str(photo), '--whole-image') == 1
    said = capsys.readouterr()
    assert 'text.jpg: is not a picture' in said.err and 'absent.jpg: ' in said.err
    assert 'A b.v1.PNG: keypoints, keypoint_scores in' in said.out
    names = {path.name for path in (tmp_path / 'outputs').iterdir()}
    assert names == {f'A b.v1.PNG.{suffix}' for suffix in ('json', 'npz', 'png')}
    stored = json.loads((tmp_path / 'outputs' / 'A b.v1.PNG.json').read_text())
    assert stored['size'] == [330, 300] and len(stored['keypoints']) == 308
    assert stored['keypoints'][0]['name'] == 'nose'
    arrays = np.load(tmp_path / 'outputs' / 'A b.v1.PNG.npz')
    assert arrays['keypoints'].shape == (308, 2)


@pytest.mark.parametrize('task', ['seg', 'normal', 'pointmap', 'matting', 'pose'])
def test_drawing_has_the_size_of_the_picture(task, runner_tool, models, picture):
    put(runner_tool, models(task), postprocess=True)
    results = runner_tool.Runner('model.onnx')(picture)
    drawn = runner_tool.draw(picture, results, runner_tool.meta)
    assert drawn.dtype == np.uint8 and drawn.shape[:2] == picture.shape[:2]
    assert len(np.unique(drawn)) > 2
