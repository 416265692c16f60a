"""Which gaps between a checkpoint and a model are accepted, for which purpose."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from .errors import CheckpointError
from .matching import Match, is_last_layer

# Computed by formula where a file (of transformers) does not bring it.
COMPUTED = ('rope_embed.periods', 'num_batches_tracked')


def _real(missing: list[str]) -> list[str]:
    return [key for key in missing if not key.endswith(COMPUTED)]


def check_inference(found: Match, source: str) -> None:
    """Every weight must come from the checkpoint.

    Raises:
        CheckpointError: names the keys and both shapes.
    """
    if _real(found.missing) or found.mismatched:
        raise CheckpointError(
            f'{source} does not fit the model ({found.summary()}); {found.details()}. '
            'Use the config this checkpoint was made with'
        )


def check_training(
    found: Match, source: str, allow_missing: Sequence[str] = ()
) -> str | None:
    """The backbone must be complete; the head may be new, or end in a new layer.

    Args:
        found: what fits.
        source: for messages.
        allow_missing: shell patterns of further names that may start untrained, such as
            ``'*.adapter.*'``.

    Returns:
        A warning about what starts untrained, None if nothing does.

    Raises:
        CheckpointError: names the keys and both shapes.
    """
    lost = [
        key
        for key in _real(found.missing)
        if key.startswith(found.backbone)
        and not any(fnmatchcase(key, pattern) for pattern in allow_missing)
    ]
    wrong = [key for key in found.mismatched if not is_last_layer(key)]
    if lost or wrong:
        broken = Match(
            found.state, lost, [], {key: found.mismatched[key] for key in wrong}
        )
        raise CheckpointError(
            f'{source} does not fit the model; {broken.details()}. Use the config this '
            'checkpoint was made with, or take its backbone alone by '
            "backbone.init_cfg = dict(type='Pretrained', checkpoint=...)"
        )
    if not found.mismatched and not _real(found.missing):
        return None
    fresh = Match(found.state, _real(found.missing), [], found.mismatched)
    return f'{source}: these weights start untrained; {fresh.details()}'


def check_resume(found: Match, source: str) -> None:
    """Model and checkpoint must be the same.

    Raises:
        CheckpointError: names the keys and both shapes.
    """
    if found.missing or found.unexpected or found.mismatched:
        raise CheckpointError(
            f'cannot resume from {source}: the model has changed since '
            f'({found.summary()}); {found.details()}. Start a new run from these '
            'weights by load_from instead'
        )
