"""ONNX files that common runtimes can run."""

import importlib.util
import json
import logging
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from .metadata import KEY

OPSET = 20
# Protocol buffers hold at most 2 GiB; the graph needs room beside the weights.
_MAX_BYTES = 2**31 - 2**27


def require_onnx() -> None:
    """Raise ImportError if a package is missing, before minutes are spent."""
    packages = ('onnx', 'onnxscript', 'onnxruntime')
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f'export to ONNX needs {", ".join(missing)}; install sapiens2_mm[export]'
        )


def write_onnx(
    program: ExportedProgram,
    meta: dict[str, Any],
    path: Path,
    external_above: int = _MAX_BYTES,
) -> None:
    """Write a program as ONNX; the metadata is the JSON property ``sapiens2_mm``.

    Args:
        program: of float32 or float16 weights.
        meta: with ``dtype``, in which weights are stored.
        path: of the file.
        external_above: weights of more bytes than these go to ``PATH.data``.
    """
    import onnx_ir as ir

    names = list(meta['outputs'])
    with _quiet():
        model = torch.onnx.export(
            program,
            dynamo=True,
            input_names=['images'],
            output_names=names,
            opset_version=OPSET,
            verbose=False,
        ).model
    if meta['dtype'] == 'bfloat16':
        _store_in_bfloat16(model.graph)
    _compute_bfloat16_in_float32(model.graph)
    _softmax_in_float32(model.graph)
    for node in model.graph.all_nodes():
        node.metadata_props.clear()  # where in which file each was made
    meta['opset'] = OPSET
    model.metadata_props[KEY] = json.dumps(meta)
    weights = model.graph.initializers.values()
    external = sum(weight.const_value.nbytes for weight in weights) > external_above
    ir.save(model, path, external_data=f'{path.name}.data' if external else None)


@contextmanager
def _quiet():
    logger = logging.getLogger('onnxscript')
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    finally:
        logger.setLevel(level)


def _cast(graph: Any, node: Any, value: Any, dtype: Any, after: bool = False) -> Any:
    """``value`` in another dtype, by a Cast before or after ``node``."""
    import onnx_ir as ir

    cast = ir.node('Cast', [value], dict(to=dtype))
    (result,) = cast.outputs
    result.dtype, result.shape = dtype, value.shape
    (graph.insert_after if after else graph.insert_before)(node, cast)
    return result


def _compute_bfloat16_in_float32(graph: Any) -> None:
    """Round the results of bfloat16 nodes instead: the same numbers on any runtime.

    The rotary tables are bfloat16 whatever the weights, and runtimes hardly know more
    than the Cast of it.
    """
    import onnx_ir as ir

    bf16, fp32 = ir.DataType.BFLOAT16, ir.DataType.FLOAT
    for node in list(graph):
        if node.op_type == 'Cast':
            continue
        for index, value in enumerate(node.inputs):
            if value is not None and value.dtype == bf16:
                node.replace_input_with(index, _cast(graph, node, value, fp32))
        for name, attribute in node.attributes.items():
            if attribute.type == ir.AttributeType.TENSOR:
                tensor = attribute.as_tensor()
                if tensor.dtype == bf16:
                    values = ir.tensor(tensor.numpy().astype('float32'))
                    node.attributes[name] = ir.AttrTensor(name, values)
        for value in node.outputs:
            if value.dtype == bf16:
                value.dtype = fp32
                users = list(value.uses())
                rounded = _cast(graph, node, value, bf16, after=True)
                for user, index in users:
                    user.replace_input_with(index, rounded)


def _softmax_in_float32(graph: Any) -> None:
    import onnx_ir as ir

    half, fp32 = ir.DataType.FLOAT16, ir.DataType.FLOAT
    for node in list(graph):
        (result, *_) = node.outputs
        if node.op_type == 'Softmax' and result.dtype == half:
            node.replace_input_with(0, _cast(graph, node, node.inputs[0], fp32))
            result.dtype, users = fp32, list(result.uses())
            back = _cast(graph, node, result, half, after=True)
            for user, index in users:
                user.replace_input_with(index, back)


def _store_in_bfloat16(graph: Any) -> None:
    """Halve the weights that bfloat16 holds exactly; a Cast undoes it."""
    import onnx_ir as ir

    first = graph[0]
    for name, weight in list(graph.initializers.items()):
        if weight.dtype != ir.DataType.FLOAT:
            continue
        tensor = torch.from_numpy(weight.const_value.numpy())
        if not torch.equal(tensor, tensor.bfloat16().float()):
            continue
        users = list(weight.uses())
        weight.const_value = ir.tensor_adapters.TorchTensor(tensor.bfloat16(), name)
        weight.dtype = ir.DataType.BFLOAT16
        restored = _cast(graph, first, weight, ir.DataType.FLOAT)
        for user, index in users:
            user.replace_input_with(index, restored)
