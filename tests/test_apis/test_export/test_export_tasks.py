"""Every task by both formats: equal to the eager model, and that to the package."""

import subprocess
import sys

import cv2
import numpy as np
import pytest
import torch
from tiny_models import HOSTS, SIZE, model_cfg, randomized
from torch import nn

from sapiens2_mm.apis.export import check_parity, graph_of
from sapiens2_mm.apis.export.export import trace
from sapiens2_mm.apis.export.onnx_file import write_onnx
from sapiens2_mm.apis.export.parity import load_exported
from sapiens2_mm.apis.export.torch_file import write_torch
from sapiens2_mm.registry import MODELS
from sapiens2_mm.structures import DenseDataSample

ONE_BLOCK = dict(embed_dims=32, num_layers=1, num_heads=2, feedforward_channels=64)
# Maps of half the size of the input.
SMALL = dict(
    upsample_channels=(8, 8, 8), conv_out_channels=(8,), conv_kernel_sizes=(3,)
)
SMALL_SCALE = dict(scale_conv_out_channels=(8,), scale_hidden_channels=(4,))
TASKS = ('pose', 'seg', 'normal', 'pointmap', 'albedo', 'matting', 'depth')
FLIP = dict(flip_test=True, flip_mode='heatmap', shift_heatmap=False)


def make(task: str) -> nn.Module:
    """A model whose features and heatmaps vary smoothly, as trained ones do."""
    if task in HOSTS:
        pytest.importorskip(HOSTS[task])
    cfg = model_cfg(task, 5 if task == 'pose' else None, arch=ONE_BLOCK).model
    if task not in HOSTS:
        cfg.decode_head.update(SMALL, **SMALL_SCALE if task == 'pointmap' else {})
    model = randomized(MODELS.build(cfg))
    if task == 'pose':
        tent = torch.tensor([0.25, 0.75, 0.75, 0.25])
        for layer in model.head.deconv_layers:
            if isinstance(layer, nn.ConvTranspose2d):
                mix = layer.weight.detach()[:, :, :1, :1] * 4
                layer.weight.data = mix * torch.outer(tent, tent)
        model.dataset_meta = dict(
            flip_indices=[0, 2, 1, 4, 3], keypoint_id2name=dict(enumerate('abcde'))
        )
    if task == 'pointmap':
        model.decode_head.scale_final_layer[-1].bias.data.fill_(2)  # a positive scale
    if task == 'seg':
        model.dataset_meta = dict(classes=tuple(map(str, range(29))), palette=[])
    return model


@pytest.fixture(scope='module', params=TASKS)
def exported(request, tmp_path_factory):
    """A model, its graph, and a file of each format."""
    model = make(request.param)
    graph = graph_of(model, postprocess=True).requires_grad_(False)
    dynamic = ('batch', 'size') if request.param == 'normal' else ('batch',)
    program, meta = trace(graph, SIZE, dynamic)
    meta['dtype'] = 'float32'
    folder = tmp_path_factory.mktemp(request.param)
    write_torch(program, meta, folder / 'model.pt2')
    return model, graph, folder, program, meta


def sizes(meta):
    shapes = [(1, *SIZE), (2, *SIZE), (5, *SIZE)]
    return shapes + ([(2, 64, 112)] if 'size' in meta['input']['dynamic'] else [])


def samples(task, images):
    """Data samples of pictures that are the input of the network as they are."""
    height, width = images.shape[1:3]
    meta = dict(ori_shape=(height, width), img_shape=(height, width))
    if task == 'pose':
        from mmpose.structures import PoseDataSample

        meta = dict(
            input_size=(width, height),
            input_center=np.float32([width / 2, height / 2]),
            input_scale=np.float32([width, height]),
            flip_indices=[0, 2, 1, 4, 3],
        )
        kind = PoseDataSample
    elif task == 'seg':
        from mmseg.structures import SegDataSample as kind
    else:
        kind = DenseDataSample
    found = [kind(metainfo=meta) for _ in images]
    for sample in found:
        if task == 'pose':
            from mmengine.structures import InstanceData

            sample.gt_instances = InstanceData(
                bboxes=np.zeros((1, 4)), bbox_scores=np.ones(1)
            )
    return found


@pytest.mark.parametrize('test_cfg', [{}, FLIP])
def test_graph_finds_what_the_package_finds(exported, test_cfg, monkeypatch):
    model, graph, *_ = exported
    if graph.task == 'pose':
        monkeypatch.setattr(model, 'test_cfg', test_cfg)
    images = graph.example(SIZE, 2)
    data = dict(
        inputs=list(images.permute(0, 3, 1, 2)),
        data_samples=samples(graph.task, images),
    )
    with torch.no_grad():
        outputs, results = graph(images), model.test_step(data)
    for index, result in enumerate(results):
        if graph.task == 'pose':
            instances = result.pred_instances
            expected = dict(
                keypoints=instances.keypoints[0],
                keypoint_scores=instances.keypoint_scores[0],
            )
        elif graph.task == 'seg':
            labels = result.pred_sem_seg.data[0]
            assert outputs['labels'].dtype == torch.uint8
            assert len(labels.unique()) > 2
            expected = dict(labels=labels)
            scores = outputs['scores'][index]
            assert scores.min() > 1 / 29 and scores.max() <= 1
        else:
            expected = {
                key.removeprefix('pred_'): value for key, value in result.items()
            }
            assert set(expected) == set(outputs)
        for name, value in expected.items():
            value = torch.as_tensor(value)
            found = outputs[name][index].to(value.dtype)
            torch.testing.assert_close(found, value, atol=1e-4, rtol=0)


def test_program_reloads_and_equals_eager(exported):
    _, graph, folder, _, meta = exported
    for row in check_parity(folder / 'model.pt2', graph, sizes(meta)):
        assert max(row.difference.values()) <= 1e-5, row
    assert load_exported(folder / 'model.pt2')[1] == meta


@pytest.mark.slow
@pytest.mark.parametrize('exported', TASKS[:4], indirect=True)  # the rest adds nothing
def test_onnx_runs_and_equals_eager(exported, repo_dir):
    pytest.importorskip('onnxruntime')
    _, graph, folder, program, meta = exported
    write_onnx(program, meta, folder / 'model.onnx')
    for row in check_parity(folder / 'model.onnx', graph, sizes(meta)):
        assert max(row.difference.values()) <= 1e-3, row
    stored = load_exported(folder / 'model.onnx')[1]
    assert stored == meta and stored['opset'] == 20
    assert stored['task'] == graph.task
    if graph.task == 'normal':
        run_without_the_package(folder, repo_dir)


def run_without_the_package(folder, repo_dir):
    picture = np.random.default_rng(0).integers(0, 256, (70, 90, 3), np.uint8)
    cv2.imwrite(str(folder / 'a.png'), picture)
    code = (
        'import runpy, sys; sys.modules.update(torch=None, sapiens2_mm=None); '
        'runpy.run_path(sys.argv.pop(1), run_name="__main__")'
    )
    tool = str(repo_dir / 'tools' / 'onnx_runner.py')
    arguments = ['model.onnx', 'a.png', '--out-dir', 'out', '--size', '64', '80']
    command = [sys.executable, '-c', code, tool, *arguments]
    subprocess.run(command, cwd=folder, check=True)
    normals = np.load(folder / 'out' / 'a.png.npz')['normal']
    assert normals.shape == (70, 90, 3)
    assert np.abs(np.linalg.norm(normals, axis=-1) - 1).max() < 1e-5
    assert cv2.imread(str(folder / 'out' / 'a.png.png')).shape == picture.shape
