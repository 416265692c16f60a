"""Take the backbone out of a pretraining checkpoint."""

from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from sapiens2_mm.checkpoint.io.atomic import replacing


def export_backbone(
    state_dict: dict[str, Tensor], which: str = 'teacher'
) -> dict[str, Tensor]:
    """Weights of one encoder, with the bare keys of the released pretrained files.

    Args:
        state_dict: of a ``Sapiens2Pretrain``.
        which: ``'teacher'`` or ``'student'``.

    Returns:
        Copies; nothing of decoder, head and center.

    Raises:
        ValueError: if the state dict has no such encoder.
    """
    prefix = 'backbone.' if which == 'student' else f'{which}.backbone.'
    weights = {
        key[len(prefix) :]: value.detach().clone().contiguous()
        for key, value in state_dict.items()
        if key.startswith(prefix)
    }
    if not weights:
        raise ValueError(
            f'export_backbone: no key starts with {prefix!r}; give a checkpoint of '
            "Sapiens2Pretrain, and which='student' if it was trained without a head"
        )
    return weights


def save_backbone(
    state_dict: dict[str, Tensor], path: str | Path, which: str = 'teacher'
) -> None:
    """Write ``export_backbone`` of a state dict as safetensors.

    What was there before is replaced as a whole: a model that has it mapped keeps its
    weights.
    """
    weights = export_backbone(state_dict, which)
    with replacing(path) as temporary:
        save_file({key: value.cpu() for key, value in weights.items()}, temporary)
