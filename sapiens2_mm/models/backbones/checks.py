"""What a Sapiens2 backbone refuses, and why."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

OUT_TYPES = ('raw', 'cls_token', 'featmap')


def check_state_dict(backbone: nn.Module, state_dict: dict, prefix: str) -> None:
    """Refuse weights of another patch size, or made with the other tokenizer option.

    A non-strict loader reports such keys as a warning at most, and the result is a
    model that runs on partly random weights.

    Args:
        backbone: the ``Sapiens2`` about to be filled.
        state_dict: all weights given to the loader.
        prefix: what stands before the keys of ``backbone``.

    Raises:
        ValueError: names the keys and the option to change.
    """
    weight = state_dict.get(prefix + 'patch_embed.projection.weight')
    if weight is None:  # no backbone in it; missing keys are the loader's to tell
        return
    patch_size = (backbone.patch_size,) * 2
    if tuple(weight.shape[2:]) != patch_size:
        raise ValueError(
            f'Sapiens2: the checkpoint has patch size {tuple(weight.shape[2:])} '
            f'({prefix}patch_embed.projection.weight), the model {patch_size}; set '
            f'patch_size={weight.shape[-1]}, or resize the image instead of the patch'
        )
    keys = [key for key in state_dict if key.startswith(prefix + 'tokenizer.')]
    if keys and not backbone.use_tokenizer:
        raise ValueError(
            f'Sapiens2: the checkpoint has {len(keys)} tokenizer keys ({keys[0]}, ...)'
            ', the model has no tokenizer; set use_tokenizer=True'
        )
    if not keys and backbone.use_tokenizer:
        raise ValueError(
            'Sapiens2: the model has a tokenizer, but the checkpoint has no key '
            f'{prefix}tokenizer.*; set use_tokenizer=False'
        )


def check_number(name: str, value: Any, kind: type = int) -> None:
    """Raise a ``TypeError`` unless ``value`` is an int, or with ``float`` a number."""
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or isinstance(value, bool):
        expected = 'a number' if kind is float else 'an int'
        raise TypeError(f'Sapiens2: {name} must be {expected}, got {value!r}')


def check_options(
    out_type: str, frozen_stages: int, drop_path_rate: float, num_layers: int
) -> None:
    """Refuse values of these options of ``Sapiens2`` that it does not know.

    Raises:
        ValueError: names the option and what it may be.
        TypeError: if a number is none.
    """
    if out_type not in OUT_TYPES:
        raise ValueError(
            f'Sapiens2: out_type must be one of {list(OUT_TYPES)}, got {out_type!r}'
        )
    check_number('frozen_stages', frozen_stages)
    if not -1 <= frozen_stages <= num_layers:
        raise ValueError(
            f'Sapiens2: frozen_stages must be -1 to {num_layers} (the number of '
            f'blocks), got {frozen_stages}'
        )
    check_number('drop_path_rate', drop_path_rate, float)
    if not 0 <= drop_path_rate < 1:
        raise ValueError(
            f'Sapiens2: drop_path_rate must be in [0, 1), got {drop_path_rate}'
        )


def parse_out_indices(
    out_indices: int | Sequence[int], num_layers: int
) -> tuple[int, ...]:
    """Block indices in ascending order, none negative; repeated ones stay.

    Raises:
        ValueError: if there is none, or one lies outside the blocks.
        TypeError: if one is no int.
    """
    is_several = isinstance(out_indices, Sequence)
    indices = list(out_indices) if is_several else [out_indices]
    if not indices:
        raise ValueError('Sapiens2: out_indices is empty; name at least one block')
    for index in indices:
        if not isinstance(index, int):
            raise TypeError(
                f'Sapiens2: out_indices must be int or ints, got {out_indices!r}'
            )
        if not -num_layers <= index < num_layers:
            raise ValueError(
                f'Sapiens2: out_indices {out_indices} must lie in '
                f'[{-num_layers}, {num_layers - 1}] for {num_layers} blocks'
            )
    return tuple(sorted(index % num_layers for index in indices))


def check_size(
    what: str, size: tuple[int, int], patch_size: int, multiple: int
) -> None:
    """Refuse an image size whose sides are no multiples of ``multiple``.

    Args:
        what: what the size is, for the message.
        size: (height, width) in pixels.
        patch_size: side of a patch.
        multiple: ``patch_size``, times the window size of the tokenizer if used.

    Raises:
        ValueError: names the size and the multiple.
        TypeError: if a number is no int.
    """
    check_number('patch_size and window_size', multiple)
    if multiple < 1:
        raise ValueError(
            'Sapiens2: patch_size and window_size must be positive, got patch_size '
            f'{patch_size}'
        )
    for side in size:
        check_number(f'{what} (height, width)', side)
    if len(size) == 2 and all(side > 0 and side % multiple == 0 for side in size):
        return
    factors = f'patch_size {patch_size}'
    if multiple != patch_size:
        factors += f' * window_size {multiple // patch_size} = {multiple}'
    raise ValueError(
        f'Sapiens2: {what} {size} must be a multiple of {factors}; pad or resize'
    )


def check_ids_keep(ids_keep: Tensor, batch_size: int, num_tokens: int) -> None:
    """Refuse indices that are not (B, n) long, or beyond the tokens of an image.

    Raises:
        ValueError: says which.
    """
    if (
        ids_keep.dtype != torch.long
        or ids_keep.ndim != 2
        or len(ids_keep) != batch_size
    ):
        raise ValueError(
            f'Sapiens2: ids_keep must be a long tensor (B, n) with B = {batch_size}, '
            f'got {ids_keep.dtype} {tuple(ids_keep.shape)}'
        )
    # On an accelerator the check would wait for the device.
    if ids_keep.device.type == 'cpu' and ids_keep.numel():
        low, high = int(ids_keep.min()), int(ids_keep.max())
        if low < 0 or high >= num_tokens:
            raise ValueError(
                f'Sapiens2: ids_keep must lie in [0, {num_tokens - 1}] for this image '
                f'size, got {low} to {high}'
            )
