"""Weights that are no plain tensors of a model, told by their keys."""

from collections.abc import Iterable

from ..errors import CheckpointError, listed

# Parts of keys, what they show, and what to do.
_FORMS = (
    (
        ('.lora_A', '.lora_B', '.lora_embedding', '.lora_magnitude'),
        'holds LoRA adapters',
        "merge them into the model (peft's merge_and_unload) and save that",
    ),
    (
        ('.absmax', '.quant_map', '.SCB', '.qweight', '.qzeros', '_packed_params'),
        'holds quantized weights',
        'load the file that they were made from',
    ),
)


def check_plain_weights(keys: Iterable[str], source: str) -> None:
    """Refuse adapters and quantized weights.

    Args:
        keys: of the checkpoint.
        source: for messages.

    Raises:
        CheckpointError: says what the file holds and what to do.
    """
    for parts, what, advice in _FORMS:
        found = [key for key in keys if any(part in key for part in parts)]
        if found:
            raise CheckpointError(f'{source} {what}: {listed(found)}; {advice}')
