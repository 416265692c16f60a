"""Mismatches between a state dict and a backbone that loaders let pass."""

from torch import nn


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
    if (
        weight is None
    ):  # no weights of a backbone; missing keys are the loader's to tell
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
