"""What a Sapiens2 backbone refuses, and why."""

from collections.abc import Iterable, Sequence
from math import inf, isfinite
from typing import Any

from mmengine.utils import to_2tuple
from torch import Tensor, nn

OUT_TYPES = ('raw', 'cls_token', 'featmap')


def check_options(
    num_layers: int,
    img_size: int | tuple[int, int],
    patch_size: int,
    window_size: int,
    out_indices: int | Sequence[int],
    out_type: str,
    frozen_stages: int,
    drop_path_rate: float,
    layer_scale: float,
) -> None:
    """Refuse values of these options of ``Sapiens2`` that it does not know.

    Raises:
        ValueError: names the option and what it must be.
    """
    n = num_layers
    indices = out_indices if isinstance(out_indices, list | tuple) else [out_indices]
    is_rate = isinstance(drop_path_rate, int | float) and 0 <= drop_path_rate < 1
    is_scale = isinstance(layer_scale, int | float) and isfinite(layer_scale)
    for name, value, fits, expected in (
        ('img_size', img_size, are_ints(to_2tuple(img_size), -inf, inf), 'ints'),
        ('patch_size', patch_size, are_ints([patch_size], 1, inf), 'a positive int'),
        ('window_size', window_size, are_ints([window_size], 1, inf), 'a positive int'),
        (
            'out_indices',
            out_indices,
            len(indices) > 0 and are_ints(indices, -n, n - 1),
            f'one or several ints in [{-n}, {n - 1}]',
        ),
        ('out_type', out_type, out_type in OUT_TYPES, f'one of {list(OUT_TYPES)}'),
        (
            'frozen_stages',
            frozen_stages,
            are_ints([frozen_stages], -1, n),
            f'an int in [-1, {n}], {n} being the number of blocks',
        ),
        ('drop_path_rate', drop_path_rate, is_rate, 'a number in [0, 1)'),
        ('layer_scale_init_value', layer_scale, is_scale, 'a finite number'),
    ):
        if not fits:
            raise ValueError(f'Sapiens2: {name} must be {expected}, got {value!r}')


def are_ints(values: Iterable[Any], low: float, high: float) -> bool:
    """Whether all are ints in [low, high]; True and False are none."""
    return all(type(value) is int and low <= value <= high for value in values)


def check_size(what: str, size: Sequence[int], patch_size: int, multiple: int) -> None:
    """Refuse an image size whose sides are no multiples of ``multiple``.

    Args:
        what: what the size is, for the message.
        size: (height, width) in pixels.
        patch_size: side of a patch.
        multiple: ``patch_size``, times the window size of the tokenizer if used.

    Raises:
        ValueError: names the size and the multiple.
    """
    factors = f'patch_size {patch_size}'
    if multiple != patch_size:
        factors += f' * window_size {multiple // patch_size} = {multiple}'
    # The sides may be traced tensors.
    if len(size) != 2 or any(side < 1 or side % multiple for side in size):
        raise ValueError(
            f'Sapiens2: {what} {size} must be a multiple of {factors}; pad or resize'
        )


def check_ids_keep(ids_keep: Tensor, batch_size: int, num_tokens: int) -> None:
    """Refuse indices that are not (B, n), or beyond the tokens of an image.

    Raises:
        ValueError: names both shapes and ranges.
    """
    fits = ids_keep.ndim == 2 and len(ids_keep) == batch_size
    if ids_keep.device.type == 'cpu':  # elsewhere it would wait for the device
        fits = fits and bool(((ids_keep >= 0) & (ids_keep < num_tokens)).all())
    expected = f'({batch_size}, n) indices of {num_tokens} tokens'
    if not fits:
        raise ValueError(f'Sapiens2: ids_keep must be {expected}, got {ids_keep}')


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
    weight = state_dict.get(f'{prefix}patch_embed.projection.weight')
    if weight is None:  # no backbone in it; missing keys are the loader's to report
        return
    has_tokenizer = any(key.startswith(f'{prefix}tokenizer.') for key in state_dict)
    for option, keys, found in (
        ('patch_size', 'patch_embed.projection.weight', (0, *weight.shape)[-1]),
        ('use_tokenizer', 'tokenizer.*', has_tokenizer),
    ):
        own = getattr(backbone, option)
        if found != own:
            raise ValueError(
                f'Sapiens2: the keys {prefix}{keys} of the checkpoint show {option}='
                f'{found}, the model has {option}={own}; set {option}={found}'
            )
