"""What makes a built single-device model fit its machines, in this order.

``recompute`` frees activations, ``compile_blocks`` makes blocks faster, ``shard``
spreads parameters over processes. Each works in place, block by block, and leaves all
names as they are; the models know nothing of it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import MethodType
from typing import Any

import torch
from mmengine.dist import is_main_process
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

from sapiens2_mm.checkpoint.loading import is_sharded

_ATEN = torch.ops.aten
# What costs most of the time: products of matrices, and attention on all devices.
_KEPT = [
    _ATEN.mm.default,
    _ATEN.addmm.default,
    _ATEN._scaled_dot_product_flash_attention.default,
    _ATEN._scaled_dot_product_flash_attention_for_cpu.default,
    _ATEN._scaled_dot_product_efficient_attention.default,
    _ATEN._scaled_dot_product_cudnn_attention.default,
]
_BLOCKS = re.compile(r'(.*\.)?(blocks|layers)')
# Methods of models that are called from outside, beside ``forward``.
_BESIDE_FORWARD = ('reconstruct',)


def _full(self: nn.Module, *args: Tensor | tuple) -> Tensor:
    if not torch.is_grad_enabled():
        return type(self).forward(self, *args)
    return checkpoint(type(self).forward, self, *args, use_reentrant=False)


def _selective(self: nn.Module, *args: Tensor | tuple) -> Tensor:
    if not torch.is_grad_enabled() or getattr(self, 'keeps_graph', False):
        return _full(self, *args)
    contexts = partial(create_selective_checkpoint_contexts, _KEPT)
    return checkpoint(
        type(self).forward, self, *args, use_reentrant=False, context_fn=contexts
    )


_FORWARDS: dict[str, Callable] = {'full': _full, 'selective': _selective}


def recompute(model: nn.Module, mode: str) -> None:
    """Let the blocks of encoders compute anew in the backward pass what it needs.

    Args:
        model: a backbone, or what contains one. A window tokenizer's blocks count too.
        mode: ``'full'`` keeps the input of a block alone, ``'selective'`` also the
            results of attention and of matrix products, so that only cheap operations
            run twice; ``'none'`` keeps all.

    Raises:
        ValueError: on another mode.
    """
    if mode not in ('none', *_FORWARDS):
        raise ValueError(
            f"recompute must be 'none', 'selective' or 'full', got {mode!r}"
        )
    for block in blocks_of(getattr(model, 'backbone', model)):
        block.__dict__.pop('forward', None)
        if mode != 'none':
            block.forward = MethodType(_FORWARDS[mode], block)


def keep_graph(model: nn.Module, keep: bool) -> None:
    """Whether more than one backward pass goes through what blocks compute next.

    What ``'selective'`` keeps is for one; it is ``'full'`` meanwhile.
    """
    for block in blocks_of(model):
        block.keeps_graph = keep


def compile_blocks(model: nn.Module, **options: object) -> None:
    """Compile all transformer blocks; equal blocks share what is compiled.

    The time to compile does therefore not grow with depth, and ``embed`` and
    ``encode``, by which pretraining calls a backbone, run compiled blocks too.

    Args:
        model: ``recompute`` comes first. A backbone without such blocks is compiled
            as a whole.
        options: of ``torch.compile``.
    """
    compiled: dict[Callable, Callable] = {}
    for block in blocks_of(model) or [model.backbone]:
        function = block.forward.__func__
        if function not in compiled:
            compiled[function] = torch.compile(function, **options)
        block.forward = MethodType(compiled[function], block)


@contextmanager
def parameters_on_meta() -> Iterator[None]:
    """While active, modules that are built have parameters without memory.

    Buffers, and all else that a constructor computes, are real.
    """
    from torch.nn.modules.module import register_module_parameter_registration_hook

    handle = register_module_parameter_registration_hook(
        lambda module, name, parameter: None if parameter is None else _meta(parameter)
    )
    try:
        yield
    finally:
        handle.remove()


def take_parameters(model: nn.Module) -> dict[str, Tensor]:
    """The values of all parameters, which go to the meta device."""
    taken = {name: p.detach() for name, p in model.named_parameters()}
    moved: dict[nn.Parameter, nn.Parameter] = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                moved.setdefault(parameter, _meta(parameter))
                module._parameters[name] = moved[parameter]
    return taken


def _meta(parameter: nn.Parameter) -> nn.Parameter:
    return nn.Parameter(parameter.detach().to('meta'), parameter.requires_grad)


def shard(
    model: nn.Module,
    mesh: DeviceMesh,
    param_dtype: torch.dtype | None = None,
    reduce_dtype: torch.dtype | None = None,
) -> None:
    """Give each process its part of every parameter, by FSDP2.

    Each transformer block is a group that is gathered for its own computation and
    freed after it; the rest is one group, gathered while ``forward`` runs. ``embed``
    and ``encode`` of a backbone therefore belong inside the ``forward`` of its model,
    or in ``reconstruct``, which gathers too.

    Args:
        model: parameters on the meta device; they are on that of the mesh
            afterwards, not yet filled.
        mesh: of one dimension; or of two, whose first holds copies.
        param_dtype: what parameters are gathered in, and ``forward`` computes in by
            autocast; None is their own. Parts keep their own dtype.
        reduce_dtype: what gradients are summed in; None is ``param_dtype``.
    """
    from torch.distributed.fsdp import (
        MixedPrecisionPolicy,
        fully_shard,
        register_fsdp_forward_method,
    )

    beside = [name for name in _BESIDE_FORWARD if hasattr(model, name)]
    if param_dtype is not None:
        context = torch.autocast(mesh.device_type, param_dtype)
        for name in ('forward', *beside):
            setattr(model, name, context(getattr(model, name)))
    # Autocast casts where it is needed; images and targets keep their precision.
    policy = MixedPrecisionPolicy(param_dtype, reduce_dtype, cast_forward_inputs=False)
    for module in (*blocks_of(model), model):
        # The root too: between steps all parameters are parts.
        fully_shard(module, mesh=mesh, mp_policy=policy, reshard_after_forward=True)
    for name in beside:
        register_fsdp_forward_method(model, name)
    model._apply(
        lambda x: (
            torch.empty_like(x, device=mesh.device_type)
            if x.is_meta
            else x.to(mesh.device_type)
        )
    )


def gathered(state: Any) -> Any:
    """The same with whole tensors on the CPU; without them but in the main process.

    A parameter is whole in all processes for a moment, one at a time.
    """
    if isinstance(state, Mapping):
        return {key: gathered(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return [gathered(value) for value in state]
    if not isinstance(state, Tensor):
        return state
    if is_sharded(state):
        state = state.full_tensor()
    return state.detach().cpu() if is_main_process() else None


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """Transformer blocks: what is in a ``ModuleList`` named ``blocks`` or ``layers``.

    Those are the names in our models, and in the transformers of all hosts.
    """
    return [
        block
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList) and _BLOCKS.fullmatch(name)
        for block in module
    ]
