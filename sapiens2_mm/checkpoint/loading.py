"""Put the weights of a checkpoint into a model."""

import logging
from collections.abc import Sequence

import torch
from mmengine.logging import print_log
from torch import Tensor, nn

from .errors import CheckpointError
from .io.reader import read_checkpoint
from .matching import Match, match
from .strictness import check_inference, check_training


def load_for_inference(
    model: nn.Module,
    source: str,
    device: str | torch.device = 'cpu',
    dtype: torch.dtype | None = None,
    strict: bool = True,
) -> dict:
    """Fill a model, which may stand on the meta device, with a checkpoint.

    Tensors of the file take the place of the model's; nothing is copied that has the
    right dtype already.

    Args:
        model: built, filled or not.
        source: see ``read_checkpoint``.
        device: where the weights go.
        dtype: of the parameters; None keeps the model's. Buffers keep theirs.
        strict: refuse a checkpoint that lacks weights of the model. Otherwise they
            keep their values, with a warning.

    Returns:
        ``meta`` of the checkpoint.

    Raises:
        CheckpointError: if the checkpoint does not fit; names the keys and shapes.
    """
    checkpoint = read_checkpoint(source, device, dtype)
    found = match(checkpoint['state_dict'], model, source)
    del checkpoint['state_dict']
    if strict:
        check_inference(found, source)
    else:
        _log_untrained(found, source)
    _assign(found.state, model, device, dtype)
    on_meta = [name for name, p in model.named_parameters() if p.is_meta]
    on_meta += [name for name, b in model.named_buffers() if b.is_meta]
    if on_meta:
        raise CheckpointError(f'{source} left {on_meta} of the model without values')
    log_summary(found, source)
    return checkpoint['meta']


def load_backbone(
    backbone: nn.Module,
    source: str,
    prefix: str | None = None,
    allow_missing: Sequence[str] = (),
) -> None:
    """Fill a backbone from a checkpoint of itself or of a model that contains it.

    Args:
        backbone: a ``Sapiens2``.
        source: see ``read_checkpoint``.
        prefix: which of several backbones in the checkpoint; none needed otherwise.
        allow_missing: shell patterns of weights that may keep their values, with a
            warning.

    Raises:
        CheckpointError: if another weight is missing, or one has another shape.
    """
    state = read_checkpoint(source)['state_dict']
    if prefix is not None:
        state = {k: v for k, v in state.items() if k.startswith(prefix)} or state
    found = match(state, backbone, source)
    if warning := check_training(found, source, allow_missing):
        print_log(warning, logger='current', level=logging.WARNING)
    own = backbone.state_dict()
    found.state.update({key: own[key] for key in found.missing})
    fill_parameters(backbone, found.state)
    backbone.load_state_dict(found.state, strict=False)
    log_summary(found, f'{source} into the backbone')


def fill_parameters(model: nn.Module, state: dict[str, Tensor]) -> None:
    """Let the parameters of a model take over tensors of a file without a copy.

    The parameters stay the objects that an optimizer or a wrapper may hold. In
    ``state`` they replace the tensors taken over, so that ``load_state_dict`` of it has
    only the rest to copy: buffers, and tensors that are a part of something. Of a
    sharded parameter each process copies its own part, and touches no other.
    """
    taken = set()
    for name, parameter in model.named_parameters():
        tensor = state.get(name)
        if tensor is None or tensor.shape != parameter.shape:
            continue
        if is_sharded(parameter):
            if tensor is not parameter:
                with torch.no_grad():
                    parameter.copy_(own_part(tensor, parameter))
            state[name] = parameter
            continue
        storage = tensor.untyped_storage()
        is_part = storage.nbytes() != tensor.nbytes or storage.data_ptr() in taken
        if is_part or not tensor.is_contiguous():
            continue
        taken.add(storage.data_ptr())
        parameter.data = tensor.detach().to(parameter.device, parameter.dtype)
        state[name] = parameter


def is_sharded(tensor: Tensor) -> bool:
    """Whether this process has only a part of it (a ``DTensor``)."""
    return hasattr(tensor, 'device_mesh')


def own_part(tensor: Tensor, parameter: Tensor) -> Tensor:
    """What this process has of a whole tensor, sharded as ``parameter`` is."""
    from torch.distributed.tensor import distribute_tensor

    mesh, placements = parameter.device_mesh, parameter.placements
    return distribute_tensor(tensor.detach(), mesh, placements, src_data_rank=None)


def log_summary(found: Match, source: str) -> None:
    """The one line that says what was loaded."""
    print_log(f'Loaded {source}: {found.summary()}', logger='current')


def _log_untrained(found: Match, source: str) -> None:
    if found.missing or found.mismatched:
        print_log(
            f'{source} does not fill the model, as was asked for: {found.details()}',
            logger='current',
            level=logging.WARNING,
        )


def _assign(
    state: dict[str, Tensor],
    model: nn.Module,
    device: str | torch.device,
    dtype: torch.dtype | None,
) -> None:
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    for key, tensor in state.items():
        if key in parameters:
            wanted = dtype or parameters[key].dtype
        else:
            wanted = buffers[key].dtype
        state[key] = tensor.to(device, wanted)
    model.load_state_dict(state, strict=False, assign=True)
