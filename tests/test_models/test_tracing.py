"""Every model by the tracers: ``torch.jit.trace`` and the ONNX exporter built on it."""

import io

import pytest
import torch
from tiny_models import SIZE, build
from torch import Tensor, nn

from sapiens2_mm.models.layers import RMSNorm

__all__ = ['build']  # a fixture
TASKS = ('pose', 'seg', 'normal', 'pointmap', 'albedo', 'depth', 'matting')


class Network(nn.Module):
    """Images alone in, tensors out; a model of mmpose asks for samples too."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        out = self.model(images, None)
        return tuple(out) if isinstance(out, list | tuple) else (out,)


@pytest.mark.filterwarnings('ignore::torch.jit.TracerWarning')
@pytest.mark.parametrize('task', TASKS)
def test_traced_by_torch(task, build):
    network = Network(build(task)).eval()
    tables = network.model.backbone.rope_embed._tables
    traced = torch.jit.trace(network, torch.randn(2, 3, *SIZE))
    assert all(type(side) is int for table in tables for side in table[:2])
    images = torch.randn(3, 3, *SIZE)
    for ours, theirs in zip(network(images), traced(images), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('task', TASKS)
def test_written_by_the_tracing_exporter(task, build):
    network = Network(build(task, rope_dtype='fp32')).eval()
    images = torch.randn(2, 3, *SIZE)
    file = io.BytesIO()
    try:
        torch.onnx.export(
            network, (images,), file, dynamo=False, input_names=['images'],
            dynamic_axes=dict(images={0: 'batch'}), opset_version=17,
        )  # fmt: skip
    except torch.onnx.errors.OnnxExporterError as err:
        # The graph is there; the exporter checks it by a package that torch lacks.
        assert 'Module onnx is not installed' in str(err)
        return
    runtime = pytest.importorskip('onnxruntime').InferenceSession(file.getvalue())
    images = torch.randn(3, 3, *SIZE)
    outputs = runtime.run(None, dict(images=images.numpy()))
    for ours, theirs in zip(network(images), outputs, strict=True):
        torch.testing.assert_close(ours, torch.from_numpy(theirs), atol=1e-4, rtol=0)


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16])
def test_the_norm_of_that_exporter_is_the_same(dtype, monkeypatch):
    norm, x = RMSNorm(8).to(dtype), torch.randn(2, 5, 8, dtype=dtype)
    nn.init.normal_(norm.weight)
    expected = norm(x)
    monkeypatch.setattr(torch.jit, 'is_tracing', lambda: True)
    monkeypatch.setattr(torch.onnx, 'is_in_onnx_export', lambda: True)
    monkeypatch.setattr('torch.nn.functional.rms_norm', None)
    tolerance = 1e-6 if dtype == torch.float32 else 0.02
    torch.testing.assert_close(norm(x), expected, atol=tolerance, rtol=tolerance)
