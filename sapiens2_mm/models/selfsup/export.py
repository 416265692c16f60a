"""Take the backbone out of a pretraining checkpoint."""

from torch import Tensor


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
