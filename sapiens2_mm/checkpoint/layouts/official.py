"""A Sapiens2 model of any layout under its official names."""

from collections.abc import Iterable
from dataclasses import dataclass

from mmengine.logging import print_log
from torch import Tensor

from ..errors import CheckpointError, listed
from .names import (
    PERIODS,
    TASKS,
    backbone_prefixes,
    from_transformers,
    is_transformers,
    released_periods,
    task_of,
    without_wrappers,
)

# (embed_dims, num_layers, num_heads) of the released files
RELEASED_SIZES = {
    (768, 12, 12): 'sapiens2_0.1b',
    (1024, 24, 16): 'sapiens2_0.4b',
    (1280, 32, 16): 'sapiens2_0.8b',
    (1536, 40, 24): 'sapiens2_1b',
    (2432, 56, 32): 'sapiens2_5b',
}
_BACKBONE_PARTS = (
    'cls_token',
    'storage_tokens',
    'patch_embed.',
    'tokenizer.',
    'rope_embed.',
    'blocks.',
    'ln1.',
)
_NEEDED = (
    'storage_tokens',
    'patch_embed.projection.weight',
    'ln1.weight',
    'blocks.0.attn.q_norm.weight',
    'blocks.0.ffn.w3.weight',
)


@dataclass
class OfficialWeights:
    """Weights with official names.

    Args:
        state: the tensors.
        task: one of ``TASKS``.
    """

    state: dict[str, Tensor]
    task: str

    @property
    def prefix(self) -> str:
        return '' if self.task == 'pretrain' else 'backbone.'

    def sizes(self) -> dict[str, int]:
        """Numbers of the architecture, read off the shapes."""
        weights, start = self.state, self.prefix
        channels = weights[start + 'patch_embed.projection.weight'].shape
        head_dims = weights[start + 'blocks.0.attn.q_norm.weight'].shape[0]
        return dict(
            embed_dims=channels[0],
            num_layers=len(self.blocks()),
            num_heads=channels[0] // head_dims,
            feedforward_channels=weights[start + 'blocks.0.ffn.w3.weight'].shape[1],
            patch_size=channels[-1],
        )

    def blocks(self) -> dict[str, set[str]]:
        """Number of a block, as written -> names of its weights."""
        found: dict[str, set[str]] = {}
        start = self.prefix + 'blocks.'
        for key in self.state:
            if key.startswith(start):
                number, _, name = key[len(start) :].partition('.')
                found.setdefault(number, set()).add(name)
        return found

    def arch(self) -> str:
        """The name of the size; ``custom`` if it is none of the released ones."""
        sizes = self.sizes()
        numbers = [sizes[key] for key in ('embed_dims', 'num_layers', 'num_heads')]
        name = RELEASED_SIZES.get(tuple(numbers))
        if name is None:
            return 'custom'
        return f'{name}_4k' if any('tokenizer.' in key for key in self.state) else name

    def layers(self, name: str) -> list[Tensor]:
        """The convolution or linear weights of a sequence in the head, in order."""
        start = f'decode_head.{name}.'
        keys = [k for k in self.state if k.startswith(start) and k.endswith('.weight')]
        keys.sort(key=lambda k: int(k[len(start) :].split('.')[0]))
        return [self.state[key] for key in keys]


def to_official(
    state: dict[str, Tensor], source: str, task: str | None = None
) -> OfficialWeights:
    """Official names for the weights of one Sapiens2 model.

    Optimizer copies, decoders and other parts that are not in a released file are
    left out, with a line in the log. Of student and teacher, the teacher is taken.
    """
    if task is not None and task not in TASKS:
        raise CheckpointError(f'unknown task {task!r}; use one of {list(TASKS)}')
    state = {without_wrappers(k): v for k, v in state.items() if isinstance(v, Tensor)}
    if is_transformers(state):
        task = task or task_of(state)
        if task is None:
            raise CheckpointError(
                f'the keys of {source} do not tell its task; name it: {list(TASKS)}'
            )
        weights = OfficialWeights(from_transformers(state, task), task)
        start = weights.prefix
        weights.state[start + PERIODS] = released_periods(weights.state, start)
        return weights
    prefixes = backbone_prefixes(state, ['Sapiens2'])
    if not prefixes:
        raise CheckpointError(f'{source} holds no Sapiens2 backbone: {listed(state)}')
    prefix = min(prefixes, key=lambda p: ('teacher' not in p, len(p)))
    outer = prefix.removesuffix('backbone.')
    heads = {
        'decode_head.' + name.split('head.', 1)[1]: value
        for name, value in _under(state, outer, ('decode_head.', 'head.')).items()
    }
    found = 'pretrain' if task == 'pretrain' else task_of(heads)
    if found is None and any(key.startswith('decode_head.conv_') for key in heads):
        raise CheckpointError(
            f'{source} has a head of no official task: {listed(heads)}; name the task '
            'pretrain to take its backbone alone'
        )
    if task not in (None, 'pretrain', found):
        kinds = f'a {found or "pretrain"} model, not a {task} one'
        raise CheckpointError(f'{source} holds {kinds}; leave the task out')
    if found in (None, 'pretrain'):
        heads, found = {}, 'pretrain'
    start = '' if found == 'pretrain' else 'backbone.'
    backbone = {
        start + key[len(prefix) :]: value
        for key, value in _under(state, prefix, _BACKBONE_PARTS).items()
    }
    left_out = len(state) - len(backbone) - len(heads)
    if left_out:
        print_log(
            f'{source}: {left_out} keys are no part of a {found} model and left out',
            logger='current',
        )
    return OfficialWeights({**backbone, **heads}, found)


def check_complete(weights: OfficialWeights, source: str) -> None:
    state, start = weights.state, weights.prefix
    blocks = weights.blocks()
    names = set().union(*blocks.values())
    needed = [start + name for name in _NEEDED]
    for number in range(len(blocks)):
        gone = names - blocks.get(str(number), set())
        if gone:  # the first is enough
            needed += [f'{start}blocks.{number}.{name}' for name in sorted(gone)]
            break
    if weights.task != 'pretrain':
        needed.append(f'decode_head.conv_{weights.task}.weight')
    lost = [key for key in needed if key not in state]
    if lost:
        raise CheckpointError(f'{source} is incomplete: it lacks {listed(lost)}')
    if weights.task != 'pretrain':
        _check_head(weights, source)


def _check_head(weights: OfficialWeights, source: str) -> None:
    # Layers carry no count; a lost one shows where the channels do not fit.
    state, channels = weights.state, weights.sizes()['embed_dims']
    layers = [('deconv_layers', w.shape[:2]) for w in weights.layers('deconv_layers')]
    for name, factor in (('upsample_blocks', 4), ('conv_layers', 1)):
        layers += [
            (name, (w.shape[1], w.shape[0] // factor))
            for w in weights.layers(name)
            if w.ndim == 4  # the weights of norms are vectors
        ]
    last = f'conv_{weights.task}'
    layers.append((last, state[f'decode_head.{last}.weight'].shape[1::-1]))
    for name, (taken, given) in layers:
        if taken != channels:
            raise CheckpointError(
                f'{source} is incomplete: a layer of the head is missing at '
                f'decode_head.{name}, which takes {taken} channels and gets {channels}'
            )
        channels = given


def _under(
    state: dict[str, Tensor], outer: str, names: Iterable[str]
) -> dict[str, Tensor]:
    starts = tuple(outer + name for name in names)
    return {key: value for key, value in state.items() if key.startswith(starts)}
