"""Take the backbone out of a pretraining checkpoint."""

from torch import Tensor

_PREFIXES = {'student': 'backbone.', 'teacher': 'teacher.backbone.'}


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
        ValueError: on another ``which``, or if the state dict has no such encoder.
    """
    if which not in _PREFIXES:
        raise ValueError(
            f'export_backbone: which must be one of {list(_PREFIXES)}, got {which!r}'
        )
    prefix = _PREFIXES[which]
    weights = {
        key[len(prefix) :]: value.detach().clone().contiguous()
        for key, value in state_dict.items()
        if key.startswith(prefix)
    }
    if not weights:
        raise ValueError(
            f'export_backbone: no key starts with {prefix!r}; is this a checkpoint of '
            'Sapiens2Pretrain, and was it trained with a head (a teacher)?'
        )
    return weights
