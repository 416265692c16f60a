"""From a model to a file that runs without this package."""

import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import Dim, ExportedProgram

from .graph import Graph, graph_of
from .metadata import metadata
from .onnx_file import require_onnx, write_onnx
from .torch_file import write_torch

FORMATS = {'onnx': write_onnx, 'torch': write_torch}
DYNAMIC = ('batch', 'size')


def export_model(
    model: nn.Module,
    out: str | Path,
    format: str = 'onnx',
    *,
    dynamic: Iterable[str] = ('batch',),
    size: tuple[int, int] | None = None,
    postprocess: bool = False,
    channel_order: str = 'bgr',
    **options: Any,
) -> dict[str, Any]:
    """Write a model as an ONNX file or as a program of ``torch.export``.

    The file takes ``images`` and returns named tensors, float32 unless they are class
    ids; its metadata, which is also returned, tells sizes, orders and names. The
    arithmetic is that of the weights' dtype, with two exceptions in ONNX files: a
    softmax is always float32, and bfloat16 weights are stored as such but computed in
    float32, as most runtimes have no kernels for them.

    Args:
        model: of ``init_model``, a backbone or a model of any task. It is taken over:
            its weights lose their gradients, and bfloat16 ones become float32 if
            ``format`` is ``'onnx'``.
        out: file to write. Weights of an ONNX file that are too large for one file
            come to lie in ``OUT.data`` beside it.
        format: ``'onnx'`` or ``'torch'``.
        dynamic: what may change from call to call, of ``'batch'`` and ``'size'``.
        size: (height, width) of the input; the backbone's ``img_size`` by default.
        postprocess: take (B, H, W, 3) uint8 pictures and return the results of the
            package at that size: class ids, keypoints, unit vectors, meters.
            Otherwise take normalized (B, 3, H, W) float32.
        channel_order: of the pictures, ``'bgr'`` or ``'rgb'``.
        options: ``external_above`` of ``write_onnx``.

    Raises:
        ImportError: if ONNX packages are missing.
        OSError: if the file cannot be written.
        ValueError: for arguments that do not fit the model.
    """
    dynamic = tuple(dynamic)
    if format not in FORMATS or not set(dynamic) <= set(DYNAMIC):
        raise ValueError(
            f'format must be one of {list(FORMATS)} and dynamic some of {DYNAMIC}, got '
            f'{format!r} and {dynamic}'
        )
    if format == 'onnx':
        require_onnx()
    graph = graph_of(model, postprocess, channel_order).requires_grad_(False)
    size = tuple(size or graph.backbone.img_size)
    out = Path(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        beside = tempfile.TemporaryDirectory(prefix='.export', dir=out.parent)
    except OSError as err:
        text = f'{out} cannot be written: {err.strerror}; write elsewhere'
        raise OSError(err.errno, text) from err
    with beside as folder:
        stored = next(graph.parameters()).dtype
        if format == 'onnx' and stored == torch.bfloat16:
            for parameter in graph.parameters():
                parameter.data = parameter.data.float()
        program, meta = trace(graph, size, dynamic)
        meta['dtype'] = str(stored).removeprefix('torch.')
        written = Path(folder) / out.name
        FORMATS[format](program, meta, written, **options)
        for file in sorted(written.parent.iterdir(), reverse=True):  # data, then graph
            file.replace(out.parent / file.name)
    return meta


def trace(
    graph: Graph, size: tuple[int, int], dynamic: tuple[str, ...]
) -> tuple[ExportedProgram, dict[str, Any]]:
    """The program of a graph, and its metadata.

    Raises:
        ValueError: if the weights' dtype does not run on their device, or the model is
            tied to one size.
    """
    images = graph.example(size, 2 if 'batch' in dynamic else 1)
    try:
        outputs = graph(images)
        if 'size' in dynamic:  # a model tied to one size says so
            stride = graph.backbone.stride
            graph(graph.example((2 * stride, 3 * stride), 1))
    except RuntimeError as err:
        weights = next(graph.parameters())
        raise ValueError(
            f'a model of {weights.dtype} does not run on {weights.device}: {err}; '
            'choose another --dtype or --device'
        ) from err
    sides: dict[int, Any] = {0: Dim('batch', min=1)} if 'batch' in dynamic else {}
    if 'size' in dynamic:
        first, stride = 1 if graph.postprocess else 2, graph.backbone.stride
        sides |= {
            first: stride * Dim('rows', min=1),
            first + 1: stride * Dim('columns', min=1),
        }
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        program = torch.export.export(
            graph, (images,), dynamic_shapes={'images': sides or None}
        )
    return program, metadata(graph, outputs, size, dynamic)
