"""Which gaps between a checkpoint and a model are accepted, for which purpose."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from .errors import CheckpointError, listed
from .matching import Match, is_last_layer

# Computed by formula where a file (of transformers) does not bring it.
COMPUTED = ('rope_embed.periods', 'num_batches_tracked')


def _needed(missing: list[str]) -> list[str]:
    return [key for key in missing if not key.endswith(COMPUTED)]


def _check_tokenizer(found: Match, source: str, missing: list[str]) -> None:
    lost = [key for key in missing if key.startswith(f'{found.backbone}tokenizer.')]
    if lost:
        raise CheckpointError(
            f'the model has a window tokenizer (use_tokenizer=True), {source} is a 1K '
            f'checkpoint without one: it lacks {listed(lost)}; load a 4K checkpoint, '
            'set use_tokenizer=False, or, to train a new one, set '
            "allow_missing=['*tokenizer.*'] of init_cfg or default_hooks.load"
        )


def _misfit(found: Match, start: str, advice: str) -> CheckpointError:
    return CheckpointError(f'{start}; {found.details()}. {advice}')


def check_inference(found: Match, source: str) -> None:
    """Every weight must come from the checkpoint.

    Raises:
        CheckpointError: names the keys and both shapes.
    """
    _check_tokenizer(found, source, found.missing)
    if _needed(found.missing) or found.mismatched:
        advice = 'Use the config this checkpoint was made with'
        start = f'{source} does not fit the model ({found.summary()})'
        raise _misfit(found, start, advice)


def check_training(
    found: Match, source: str, allow_missing: Sequence[str] = ()
) -> str | None:
    """The backbone must be complete; the head may be new, or end in a new layer.

    Args:
        found: what fits.
        source: for messages.
        allow_missing: shell patterns of further names that may start untrained, such as
            ``'*.adapter.*'``, or ``'*tokenizer.*'`` to go on from 1K to 4K.

    Returns:
        A warning about what starts untrained, None if nothing does.

    Raises:
        CheckpointError: names the keys and both shapes.
    """
    missing, shapes = _needed(found.missing), found.mismatched
    lost = [
        key
        for key in missing
        if key.startswith(found.backbone)
        and not any(fnmatchcase(key, pattern) for pattern in allow_missing)
    ]
    _check_tokenizer(found, source, lost)
    wrong = {key: shapes[key] for key in shapes if not is_last_layer(key)}
    if lost or wrong:
        broken = replace(found, missing=lost, unexpected=[], mismatched=wrong)
        advice = (
            'Use the config this checkpoint was made with, or take its backbone alone '
            "by backbone.init_cfg = dict(type='Pretrained', checkpoint=...)"
        )
        raise _misfit(broken, f'{source} does not fit the model', advice)
    if not missing and not shapes:
        return None
    fresh = replace(found, missing=missing, unexpected=[])
    return f'{source}: these weights start untrained; {fresh.details()}'


def check_resume(found: Match, source: str) -> None:
    """Model and checkpoint must be the same.

    Raises:
        CheckpointError: names the keys and both shapes.
    """
    if found.missing or found.unexpected or found.mismatched:
        change = f'the model has changed since ({found.summary()})'
        start = f'cannot resume from {source}: {change}'
        advice = 'Start a new run from these weights by load_from instead'
        raise _misfit(found, start, advice)
