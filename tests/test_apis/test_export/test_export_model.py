import importlib.util
import json
import sys

import pytest
import torch
from tiny_models import SIZE, backbone_cfg, model_cfg, randomized
from torch import nn

from sapiens2_mm.apis.export import check_parity, export_model, graph_of
from sapiens2_mm.apis.export.parity import load_exported
from sapiens2_mm.models.layers import TransformerBlock
from sapiens2_mm.registry import MODELS

ARCH = dict(embed_dims=32, num_layers=1, num_heads=2, feedforward_channels=64)
BATCHES = [(1, *SIZE), (2, *SIZE), (5, *SIZE)]


def backbone(dtype=torch.float32, **options) -> nn.Module:
    """One block with grouped keys, which the released models have in the middle."""
    model = MODELS.build(backbone_cfg(arch=ARCH, **options))
    model.blocks[0] = TransformerBlock(32, 2, 1, 64)
    for parameter in randomized(model).parameters():
        parameter.data = parameter.data.to(dtype)
    return model


def largest(path, graph):
    return max(
        max(row.difference.values()) for row in check_parity(path, graph, BATCHES)
    )


@pytest.mark.parametrize(
    ('out_type', 'shape'),
    [('raw', (2, 1 + 8 + 48, 32)), ('cls_token', (2, 32)), ('featmap', (2, 32, 8, 6))],
)
def test_kinds_of_features(out_type, shape):
    graph = graph_of(backbone(out_type=out_type), postprocess=True)
    assert graph(graph.example(SIZE, 2))['features'].shape == shape
    several = graph_of(
        MODELS.build(backbone_cfg(out_type=out_type, out_indices=(0, 1)))
    )
    outputs = several(several.example(SIZE, 2))
    assert [*outputs] == ['features_0', 'features_1']
    assert {value.shape for value in outputs.values()} == {shape}


@pytest.mark.slow
@pytest.mark.parametrize(
    ('dtype', 'tolerance'),
    [(torch.float32, 1e-4), (torch.float16, 0.02), (torch.bfloat16, 1e-4)],
)
def test_onnx_dtypes(dtype, tolerance, tmp_path):
    onnx = pytest.importorskip('onnx')
    # float32 lies beside the graph, as if it were too large for one file
    above = 1000 if dtype == torch.float32 else 2**31
    model, path = backbone(dtype, out_type='raw'), tmp_path / 'new' / 'model.onnx'
    meta = export_model(model, path, external_above=above)
    assert largest(path, graph_of(model)) < tolerance  # NaN fails too
    assert meta == load_exported(path)[1]
    assert meta['dtype'] == str(dtype).removeprefix('torch.')
    files = {file.name for file in path.parent.iterdir()}
    external = {'model.onnx.data'} if above == 1000 else set()
    assert files == {'model.onnx', *external}
    nodes = onnx.load(path).graph.node
    makers = {name: node for node in nodes for name in node.output}
    (softmax,) = [node for node in nodes if node.op_type == 'Softmax']
    if dtype == torch.float16:  # the scores become float32 first
        cast = makers[softmax.input[0]]
        assert cast.op_type == 'Cast'
        assert cast.attribute[0].i == onnx.TensorProto.FLOAT
    if dtype == torch.bfloat16:
        full = sum(p.numel() * 4 for p in model.parameters())
        assert path.stat().st_size < 0.5 * full + 40_000


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_program_in_half_precision(dtype, tmp_path):
    model, path = backbone(dtype, out_type='cls_token'), tmp_path / 'model.pt2'
    export_model(model, path, 'torch', dynamic=())
    graph = graph_of(model)
    (row,) = check_parity(path, graph, BATCHES[:1])
    assert row.difference['features'] <= 1e-5
    run, meta = load_exported(path)
    assert meta['input']['dynamic'] == []
    assert run(graph.example(SIZE, 1))['features'].dtype == torch.float32
    with pytest.raises((AssertionError, RuntimeError), match=r'\b128\b'):
        run(graph.example((64, 96), 1))  # names the size that it takes


def test_nothing_is_left_where_the_file_cannot_be_written(tmp_path):
    (tmp_path / 'file').write_text('a file, not a folder')
    with pytest.raises(OSError, match=r'file/model.pt2 cannot be written: .*elsewhere'):
        export_model(backbone(), tmp_path / 'file' / 'model.pt2', 'torch')
    model = backbone()
    model.forward = None  # as any error on the way
    with pytest.raises(TypeError):
        export_model(model, tmp_path / 'model.pt2', 'torch')
    assert [path.name for path in tmp_path.iterdir()] == ['file']


def test_dtype_that_the_device_cannot_run(tmp_path, monkeypatch):
    model = backbone(torch.float16)

    def forward(images):
        raise RuntimeError('"foo" not implemented for \'Half\'')

    monkeypatch.setattr(model, 'forward', forward)
    expected = r'torch.float16 does not run on cpu: "foo" .*another --dtype or --device'
    with pytest.raises(ValueError, match=expected):
        export_model(model, tmp_path / 'model.pt2', 'torch')


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (dict(format='tflite'), "format must be one of .*'tflite'"),
        (dict(dynamic=['height']), "dynamic some of .*'height'"),
        (dict(size=(100, 96)), r'\(100, 96\) must be a multiple'),
        (dict(channel_order='gbr'), "channel_order must be .*'gbr'"),
    ],
)
def test_arguments_are_checked(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        export_model(backbone(), tmp_path / 'a.pt2', **dict(format='torch') | arguments)


def test_models_that_do_not_fit_are_named(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match='Linear cannot be exported'):
        graph_of(nn.Linear(1, 1))
    foreign = MODELS.build(model_cfg('normal').model)
    foreign.backbone = nn.Conv2d(3, 32, 16, 16)
    with pytest.raises(ValueError, match='dense regression that have one'):
        graph_of(foreign)
    pointmap = MODELS.build(model_cfg('pointmap').model)
    with pytest.raises(ValueError, match=r'built for feature_size \(8, 6\)'):
        export_model(pointmap, tmp_path / 'a.pt2', 'torch', dynamic=['size'])
    pytest.importorskip('mmseg')
    cfg = model_cfg('seg').model
    cfg.test_cfg = dict(mode='slide', crop_size=(64, 64), stride=(32, 32))
    slides = MODELS.build(cfg)
    assert graph_of(slides).task == 'seg'
    with pytest.raises(ValueError, match=r'set model.test_cfg.mode=whole'):
        graph_of(slides, postprocess=True)
    pytest.importorskip('mmpose')
    cfg = model_cfg('pose').model
    cfg.head.decoder = None
    with pytest.raises(ValueError, match='another head or decoder, export it without'):
        graph_of(MODELS.build(cfg), postprocess=True)


def test_missing_package_names_the_extra(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, 'find_spec', lambda name: None if 'onnx' in name else find(name)
    )
    expected = r'needs onnx, onnxscript, onnxruntime; install sapiens2_mm\[export\]'
    with pytest.raises(ImportError, match=expected):
        export_model(backbone(), tmp_path / 'model.onnx')


def test_tool(repo_dir, tmp_path, monkeypatch, capsys):
    pytest.importorskip('mmseg')
    spec = importlib.util.spec_from_file_location('tool', repo_dir / 'tools/export.py')
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    (config,) = (repo_dir / 'configs/seg').glob('*tiny*_synthetic-humans-*.py')
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, 'argv', ['export.py', str(config), *arguments])
        try:
            return tool.main()
        except SystemExit as stop:
            return stop.code

    options = [
        '--cfg-options',
        *(f'model.backbone.arch.{k}={v}' for k, v in ARCH.items()),
    ]
    options += ['model.decode_head.in_channels=32']
    torch_file = ['--format', 'torch', '--out', 'a.pt2', '--dynamic', 'none', '--check']
    assert run(*torch_file, '--with-postprocess', *options) == 0
    said = capsys.readouterr().out
    assert 'a.pt2 is written\nbatch 1: labels 0.0e+00, scores ' in said
    meta = load_exported('a.pt2')[1]
    assert json.loads(said[said.index('{\n') : said.index('\na.pt2')]) == meta
    assert meta['classes'][:2] == ['Background', 'Apparel']
    assert len(meta['classes']) == len(meta['palette']) == 29
    image = meta['input']
    assert (image['height'], image['width'], image['dynamic']) == (256, 192, [])
    assert (image['layout'], image['channel_order']) == ('NHWC uint8', 'bgr')
    assert image['mean'] == pytest.approx([123.675, 116.28, 103.53])
    assert meta['prepare'] == dict(resize='stretch', shrink='area', enlarge='bicubic')
    assert meta['package'].startswith('sapiens2_mm ')
    assert run('--out', 'a.pt2') == 2
    assert '--out of --format onnx ends in .onnx' in capsys.readouterr().err
    assert run('absent.pth', '--format', 'torch') == 2
    assert 'absent.pth' in capsys.readouterr().err
