"""Memory of a training step on one of many GPUs."""

import weakref
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sapiens2_mm.registry import OPTIMIZERS

from ..parallelize import blocks_of, recompute
from .dry_run import build_model, dry_run, loss_of, make_inputs, views_of

_TRACED_BATCH = 2  # smallest that has neighbors for KoLeo
_TO_COPY = torch.ops.aten._to_copy.default


@dataclass(frozen=True)
class Sizes:
    """Numbers of parameters.

    Args:
        student: trained or frozen, without the teacher.
        trained: those that have a gradient.
        teacher: of an EMA teacher.
        block: of the largest transformer block.
        outside: in no transformer block, with the teacher's; gathered together.
    """

    student: int
    trained: int
    teacher: int
    block: int
    outside: int


@dataclass(frozen=True)
class Trace:
    """Bytes that are alive after each operation of a forward and backward pass.

    Args:
        activations: of ``_TRACED_BATCH`` images, what is temporary included.
        copies: of parameters in the type that autocast computes in.
        gradients: of parameters, in their type.
        itemsize: bytes of a value of a parameter in this pass.
        sizes: of the model.
    """

    activations: np.ndarray
    copies: np.ndarray
    gradients: np.ndarray
    itemsize: int
    sizes: Sizes


@dataclass(frozen=True)
class Memory:
    """Bytes on one GPU when most are in use.

    Args:
        weights: float32, of the student.
        gradients: of its trained parameters, float32, as far as they exist then.
        optimizer: its state.
        teacher: float32.
        activations: and what is temporary.
        copies: what is beside the float32 part: weights gathered from other GPUs, or
            cast by autocast, and what gradients are reduced in.
        batch: images, 8 bit and normalized.
    """

    weights: int
    gradients: int
    optimizer: int
    teacher: int
    activations: int
    copies: int
    batch: int

    @property
    def total(self) -> int:
        return sum(vars(self).values())


def trace_step(cfg: Config, mode: str, param_dtype: torch.dtype | None = None) -> Trace:
    """Follow a step of the config's model without running it.

    Args:
        cfg: with ``model`` and ``optim_wrapper``.
        mode: of ``parallelize.recompute``.
        param_dtype: what sharded parameters are gathered and used in; None computes as
            ``optim_wrapper`` says.
    """
    views = views_of(cfg)
    mixed = param_dtype is not None or is_mixed(cfg)
    with dry_run():
        model = build_model(cfg.model)
        sizes = _sizes(model)
        recompute(model, mode)
        if param_dtype is not None:
            _cast_parameters(model, param_dtype)
        inputs = make_inputs(views, _TRACED_BATCH)
        watch = _Watch(model, inputs)
        context = torch.autocast('cpu', torch.bfloat16) if mixed else nullcontext()
        with watch:
            with context:
                loss = loss_of(model, inputs)
            loss.backward()
    activations, copies, gradients = np.array(watch.trace).T
    itemsize = 4 if param_dtype is None else param_dtype.itemsize
    return Trace(activations, copies, gradients, itemsize, sizes)


def plan_memory(
    cfg: Config, trace: Trace, batch_size: int, num_gpus: int, shard_size: int = 1
) -> Memory:
    """Of one GPU.

    Args:
        cfg: that of the trace.
        trace: of ``trace_step``.
        batch_size: images of one GPU.
        num_gpus: all.
        shard_size: GPUs that hold one copy in parts; 1 is DDP.
    """
    sizes = trace.sizes
    scale = batch_size / _TRACED_BATCH
    gradients = trace.gradients * (4 / trace.itemsize / shard_size)
    alive = trace.activations * scale + trace.copies + gradients
    peak = int(alive.argmax())
    copies = int(trace.copies[peak])
    if shard_size > 1:
        # Two blocks while one is fetched, the gradients of one, and its sums.
        copies += trace.itemsize * (3 * sizes.block + 2 * sizes.outside)
        copies += 4 * sizes.block
    elif num_gpus > 1:
        copies += 4 * sizes.trained  # the buckets of DDP
    pixels = sum(number * 3 * h * w for number, (h, w) in views_of(cfg))
    return Memory(
        weights=4 * sizes.student // shard_size,
        gradients=int(gradients[peak]),
        optimizer=state_bytes(cfg.optim_wrapper.optimizer)
        * sizes.trained
        // shard_size,
        teacher=4 * sizes.teacher // shard_size,
        activations=int(trace.activations[peak] * scale),
        copies=copies,
        batch=5 * batch_size * pixels,
    )


def loader_memory(cfg: Config, batch_size: int) -> int:
    """Bytes of host memory for the batches that one GPU's workers hold ready."""
    loader = cfg.train_dataloader
    pixels = sum(number * 3 * h * w for number, (h, w) in views_of(cfg))
    ready = loader.get('num_workers', 0) * (loader.get('prefetch_factor') or 2)
    return batch_size * pixels * max(ready, 1)


def state_bytes(optimizer_cfg: dict) -> int:
    """Bytes of state that an optimizer keeps per float32 parameter."""
    parameter = nn.Parameter(torch.zeros(1024))
    optimizer = OPTIMIZERS.build(dict(optimizer_cfg, params=[parameter]))
    parameter.grad = torch.zeros(1024)
    optimizer.step()
    state = tree_leaves(list(optimizer.state.values()))
    return sum(x.nbytes for x in state if isinstance(x, Tensor) and x.ndim) // 1024


def is_mixed(cfg: Config) -> bool:
    """Whether the config computes in half precision."""
    return cfg.optim_wrapper.get('type', 'OptimWrapper') != 'OptimWrapper'


class _Watch(TorchDispatchMode):
    """Keeps account of storages from their first use to their end."""

    def __init__(self, model: nn.Module, inputs: Tensor | list[Tensor]) -> None:
        super().__init__()
        self.trace: list[tuple[int, int, int]] = []
        self.alive = dict(activations=0, copies=0, gradients=0)
        self.kinds: dict[int, str] = {}  # of storages, by their address
        for tensor in (*model.parameters(), *model.buffers(), *tree_leaves(inputs)):
            self.kinds[tensor.untyped_storage()._cdata] = 'before'
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(self._gradient)

    def __torch_dispatch__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        kind = 'activations'
        if func is _TO_COPY:
            source = args[0].untyped_storage()._cdata
            kind = 'copies' if self.kinds.get(source) == 'before' else kind
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                self._enter(tensor.untyped_storage(), kind)
        self.trace.append(tuple(self.alive.values()))
        return out

    def _enter(self, storage: torch.UntypedStorage, kind: str) -> None:
        key = storage._cdata
        if key not in self.kinds:
            self.kinds[key] = kind
            self.alive[kind] += storage.nbytes()
            weakref.finalize(storage, self._leave, key, storage.nbytes())

    def _leave(self, key: int, nbytes: int) -> None:
        self.alive[self.kinds.pop(key)] -= nbytes

    def _gradient(self, parameter: Tensor) -> None:
        storage = parameter.grad.untyped_storage()
        self._enter(storage, 'gradients')
        self.alive[self.kinds[storage._cdata]] -= storage.nbytes()
        self.alive['gradients'] += storage.nbytes()
        self.kinds[storage._cdata] = 'gradients'
        self.trace.append(tuple(self.alive.values()))


def _cast_parameters(model: nn.Module, dtype: torch.dtype) -> None:
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = nn.Parameter(
                    parameter.detach().to(dtype), parameter.requires_grad
                )


def _sizes(model: nn.Module) -> Sizes:
    def count(module: nn.Module | None, trained: bool = False) -> int:
        parameters = module.parameters() if module is not None else ()
        return sum(p.numel() for p in parameters if p.requires_grad or not trained)

    teacher = count(getattr(model, 'teacher', None))
    blocks = [count(block) for block in blocks_of(model)]
    return Sizes(
        student=count(model) - teacher,
        trained=count(model, trained=True),
        teacher=teacher,
        block=max(blocks, default=0),
        outside=count(model) - sum(blocks),
    )
