"""Find out how the keys of a checkpoint belong to those of a model."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import Tensor, nn

from .errors import CheckpointError, listed
from .layouts.names import (
    HEADS,
    backbone_prefixes,
    from_transformers,
    generation,
    is_transformers,
    task_of,
    without_wrappers,
)
from .layouts.other_forms import check_plain_weights
from .layouts.sapiens_v1 import check_patch_padding, with_our_predictor

# A head is the same network for another number of channels but for these layers.
_LAST_LAYERS = ('conv_', 'final_layer', 'cls_seg')
# Keys that a model lacks, what they tell of the checkpoint, and what to do.
_DEEPER = ('of a deeper backbone', 'set the arch of the checkpoint in it')
_OTHER_BACKBONES = {
    'Sapiens2': (
        ('tokenizer.', 'a 4K checkpoint', 'set use_tokenizer=True in the backbone'),
        ('blocks.', *_DEEPER),
        ('layers.', 'of the first Sapiens', 'use its config of configs/sapiens_v1'),
    ),
    'Sapiens': (
        ('layers.', *_DEEPER),
        ('blocks.', 'of Sapiens2', 'use its config, not one of configs/sapiens_v1'),
    ),
}


@dataclass
class Match:
    """Weights under the names of a model, and what does not fit.

    Args:
        state: the weights that fit, by the model's names.
        missing: names of the model that the checkpoint lacks.
        unexpected: names of the checkpoint that the model lacks.
        mismatched: name -> (shape in the checkpoint, shape in the model).
        backbone: what the model's names of its backbone start with.
    """

    state: dict[str, Tensor] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    mismatched: dict[str, tuple[tuple, tuple]] = field(default_factory=dict)
    backbone: str = ''

    def summary(self) -> str:
        text = (
            f'{len(self.state)} keys matched, {len(self.missing)} missing, '
            f'{len(self.unexpected)} unexpected'
        )
        if self.mismatched:
            text += f', {len(self.mismatched)} of another shape'
        return text

    def details(self) -> str:
        parts = []
        if self.mismatched:
            shapes = [
                f'{key}: checkpoint {theirs}, model {ours}'
                for key, (theirs, ours) in self.mismatched.items()
            ]
            parts.append('of another shape: ' + listed(shapes))
        if self.missing:
            parts.append('missing in the checkpoint: ' + listed(self.missing))
        if self.unexpected:
            parts.append('unknown to the model: ' + listed(self.unexpected))
        return '; '.join(parts)


def match(state: dict[str, Tensor], model: nn.Module, source: str) -> Match:
    """Give the weights of a checkpoint the names they have in ``model``.

    Recognized are the official, our own and transformers' layout; any prefix before
    the backbone (``module.``, ``model.``, ``teacher.``, ...), none included; and what
    compilation or sharding leaves in names. Of student and teacher in a file the
    teacher is taken, unless the model has a teacher itself.

    Raises:
        CheckpointError: if no key matches, the checkpoint has a window tokenizer (4K)
            or blocks that the model lacks, or it holds adapters or quantized weights.
    """
    names = {**dict(model.named_parameters()), **_persistent_buffers(model)}
    if not any('lora_' in name for name in names):  # a run with adapters of its own
        check_plain_weights(state, source)
    renamed, unexpected = _rename(state, set(names), source)
    found = Match(unexpected=unexpected, backbone=_backbone_of(names))
    for key, tensor in renamed.items():
        if key not in names:
            found.unexpected.append(key)
        elif tensor.shape != names[key].shape and not _adapts(model, key):
            found.mismatched[key] = (tuple(tensor.shape), tuple(names[key].shape))
        else:
            found.state[key] = tensor
    found.missing = [
        key for key in names if key not in found.state and key not in found.mismatched
    ]
    if not found.state and not found.mismatched:
        keys = f'it has {listed(state)}, the model {listed(names)}'
        raise CheckpointError(f'no key of {source} matches the model; {keys}')
    # A student that stands behind its teacher has names that the model knows.
    unknown = [key for key in found.unexpected if key not in names]
    if own := generation(names):
        _check_backbone(found, unknown, source, own)
    if own == 'Sapiens':
        _check_padding(state, model, found, source)
    return found


def _persistent_buffers(model: nn.Module) -> dict[str, Tensor]:
    buffers = dict(model.named_buffers())
    for prefix, module in model.named_modules():
        for name in module._non_persistent_buffers_set:
            buffers.pop(f'{prefix}.{name}' if prefix else name, None)
    return buffers


def _adapts(model: nn.Module, key: str) -> bool:
    """Whether a module resizes the tensor by its own hook while loading."""
    owner = model.get_submodule(key.rpartition('.')[0])
    return key.endswith('pos_embed') and bool(owner._load_state_dict_pre_hooks)


def _rename(
    state: dict[str, Tensor], names: set[str], source: str
) -> tuple[dict[str, Tensor], list[str]]:
    """The model's names for the keys, and the keys that would take a name twice."""
    state = {without_wrappers(k): v for k, v in state.items() if isinstance(v, Tensor)}
    if is_transformers(state):
        state = _official(state, names, source)
    ours, theirs = backbone_prefixes(names), backbone_prefixes(state)
    if not ours or not theirs:
        # Not a model of ours, or not a checkpoint of one.
        return _swap(state, [('module.', '')])
    is_v1 = generation(names) == 'Sapiens'
    if is_v1:
        state = with_our_predictor(state, names)
    target = min(ours, key=len)
    if any('teacher' in prefix for prefix in ours):  # a pretraining model itself
        prefix = min(theirs, key=lambda p: (p != target, len(p)))
    else:
        prefix = min(theirs, key=lambda p: ('teacher' not in p, p != target, len(p)))
    if is_v1 and f'{target}cls_token' not in names:  # of pretraining
        state.pop(f'{prefix}cls_token', None)
    swaps = [(prefix, target)]
    outer, target_outer = (p.removesuffix('backbone.') for p in (prefix, target))
    target_heads = [
        head for head in HEADS if any(n.startswith(target_outer + head) for n in names)
    ]
    if target_heads:
        swaps += [(outer + head, target_outer + target_heads[0]) for head in HEADS]
    swaps.append((outer, target_outer))
    return _swap(state, swaps)


def _official(
    state: dict[str, Tensor], names: set[str], source: str
) -> dict[str, Tensor]:
    """Official names for those of transformers."""
    if 'model.embeddings.cls_token' not in state:
        return from_transformers(state, 'pretrain')
    task = task_of(dict.fromkeys(names))  # the model knows its task for sure
    if task in (None, 'pretrain'):
        backbone = ('model.embeddings.', 'model.model.', 'model.norm.')
        state = {k[6:]: v for k, v in state.items() if k.startswith(backbone)}
        return from_transformers(state, 'pretrain')
    try:
        return from_transformers(state, task)
    except CheckpointError as err:
        text = f'{source} holds no {task} model of transformers: {err}'
        raise CheckpointError(text) from err


def _backbone_of(names: Iterable[str]) -> str:
    prefixes = backbone_prefixes(names)
    if prefixes:
        return min(prefixes, key=len)
    return 'backbone.' if any(n.startswith('backbone.') for n in names) else ''


def _swap(
    state: dict[str, Tensor], swaps: list[tuple[str, str]]
) -> tuple[dict[str, Tensor], list[str]]:
    out, rest = {}, []
    for key in state:
        for old, new in swaps:
            if key.startswith(old):
                out[new + key[len(old) :]] = state[key]
                break
        else:
            rest.append(key)
    taken = [key for key in rest if key in out]
    out.update((key, state[key]) for key in rest if key not in out)
    return out, taken


def _check_padding(
    state: dict[str, Tensor], model: nn.Module, found: Match, source: str
) -> None:
    own = getattr(model.get_submodule(found.backbone[:-1]), 'patch_padding', None)
    prefixes = backbone_prefixes(state)
    if own is not None and prefixes:  # mmpretrain's own class has none
        heads = [key for key in found.state if not key.startswith(found.backbone)]
        check_patch_padding(state, min(prefixes, key=len), own, heads, source)


def _check_backbone(
    found: Match, unknown: list[str], source: str, generation: str
) -> None:
    for part, kind, advice in _OTHER_BACKBONES[generation]:
        extra = [key for key in unknown if key.startswith(found.backbone + part)]
        if extra:
            lacks = f'the model lacks {listed(extra)}'
            raise CheckpointError(f'{source} is {kind}: {lacks}; {advice}')


def is_last_layer(key: str) -> bool:
    """Whether ``key`` belongs to the layer of a head that fixes its channels."""
    for head in HEADS:
        _, found, name = key.rpartition(head)
        if found and name.startswith(_LAST_LAYERS):
            return not name.startswith('conv_layers')
    return False
