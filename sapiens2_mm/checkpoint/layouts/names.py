"""The three layouts of Sapiens2 weights and the way between them.

* ``official``: the published files. Pretrained backbones have bare keys, task models
  ``backbone.*`` and ``decode_head.*``.
* ``ours``: the names of our models. They are the official ones, except that mmpose
  calls a head ``head``.
* ``transformers``: the names of Hugging Face transformers 5.24.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from ..errors import CheckpointError
from ..io.reader import PERIODS
from .key_map import KeyMap, Prefix, Rename, Rule, SplitRows
from .sapiens_v1 import with_our_predictor

LAYOUTS = ('official', 'ours', 'transformers')
TASKS = ('pretrain', 'pose', 'seg', 'normal', 'pointmap', 'albedo', 'matting')
_DECONV_TASKS = ('pose', 'seg')
_HEAD = 'decode_head.'
HEADS = (_HEAD, 'head.')
# Generation -> two weights that show its backbone.
GENERATIONS = {
    'Sapiens2': ('cls_token', 'storage_tokens'),
    'Sapiens': ('pos_embed', 'layers.0.attn.qkv.weight'),
}
# What compilation and sharding leave in names.
_WRAPPERS = ('_orig_mod.', '_fsdp_wrapped_module.', '_checkpoint_wrapped_module.')

_BACKBONE = (
    ('cls_token', 'embeddings.cls_token'),
    ('storage_tokens', 'embeddings.register_tokens'),
    ('patch_embed.projection.{p}', 'embeddings.patch_embeddings.{p}'),
    ('blocks.{n}.ln1.weight', 'model.layer.{n}.norm1.weight'),
    ('blocks.{n}.ln2.weight', 'model.layer.{n}.norm2.weight'),
    ('blocks.{n}.attn.wq.{p}', 'model.layer.{n}.attention.q_proj.{p}'),
    ('blocks.{n}.attn.wk.{p}', 'model.layer.{n}.attention.k_proj.{p}'),
    ('blocks.{n}.attn.wv.{p}', 'model.layer.{n}.attention.v_proj.{p}'),
    ('blocks.{n}.attn.proj.{p}', 'model.layer.{n}.attention.o_proj.{p}'),
    ('blocks.{n}.attn.q_norm.weight', 'model.layer.{n}.attention.q_norm.weight'),
    ('blocks.{n}.attn.k_norm.weight', 'model.layer.{n}.attention.k_norm.weight'),
    ('blocks.{n}.attn.gamma.weight', 'model.layer.{n}.layer_scale1.lambda1'),
    ('blocks.{n}.ffn.w3.{p}', 'model.layer.{n}.mlp.down_proj.{p}'),
    ('ln1.weight', 'norm.weight'),
)
_GATE_UP = (
    'blocks.{n}.ffn.w12.{p}',
    ('model.layer.{n}.mlp.gate_proj.{p}', 'model.layer.{n}.mlp.up_proj.{p}'),
)
_REFINE = (('conv_layers.{n*3}.{p}', 'decode_head.conv_layers.{n}.convolution.{p}'),)
_DECONV = (
    (
        'deconv_layers.{n*3}.weight',
        'decode_head.upsample_layers.{n}.convolution.weight',
    ),
)
_PIXEL_SHUFFLE = (
    ('input_conv.0.{p}', 'decode_head.input_conv.convolution.{p}'),
    ('upsample_blocks.{n}.0.{p}', 'decode_head.upsample_layers.{n}.convolution.{p}'),
)
_SCALE = (
    ('scale_conv_layers.{n*3}.{p}', 'scale_head.conv_layers.{n}.convolution.{p}'),
    ('scale_final_layer.1.{p}', 'scale_head.predictor.block1.layers.0.{p}'),
    ('scale_final_layer.3.{p}', 'scale_head.predictor.block2.layers.0.{p}'),
    ('scale_final_layer.5.{p}', 'scale_head.predictor.proj.{p}'),
)


def official_to_ours(task: str) -> KeyMap:
    """Left official, right ours."""
    if task == 'pretrain':
        return KeyMap('official', 'our', [Prefix('', '')])
    head = 'head.' if task == 'pose' else _HEAD
    rules = [Prefix('backbone.', 'backbone.'), Prefix(_HEAD, head)]
    return KeyMap('official', 'our', rules)


def official_to_transformers(task: str) -> KeyMap:
    """Left official, right transformers; without the rotary periods.

    Raises:
        CheckpointError: for a task that transformers has no class for.
    """
    if task not in TASKS or task == 'albedo':
        raise CheckpointError(f'transformers has no Sapiens2 model for {task!r}')
    if task == 'pretrain':
        return KeyMap('official', 'transformers', _backbone_rules('', ''))
    pairs = _REFINE + (_DECONV if task in _DECONV_TASKS else _PIXEL_SHUFFLE)
    if task == 'pointmap':
        pairs += _SCALE
    pairs += ((f'conv_{task}.{{p}}', 'decode_head.predictor.{p}'),)
    rules = _backbone_rules('backbone.', 'model.')
    rules += [Rename(_HEAD + left, right) for left, right in pairs]
    return KeyMap('official', 'transformers', rules)


def _backbone_rules(left: str, right: str) -> list[Rule]:
    rules: list[Rule] = [Rename(left + a, right + b) for a, b in _BACKBONE]
    gate_up = tuple(right + name for name in _GATE_UP[1])
    return [*rules, SplitRows(left + _GATE_UP[0], gate_up)]


def from_transformers(state: dict[str, Tensor], task: str) -> dict[str, Tensor]:
    """Official names for weights with transformers names.

    transformers computes the rotary periods by formula, so the result has none; see
    ``released_periods``.
    """
    state = {k: v for k, v in state.items() if not k.endswith('mask_token')}
    return official_to_transformers(task).backward(state)


def to_transformers(state: dict[str, Tensor], task: str) -> dict[str, Tensor]:
    """Transformers names for weights with official names.

    Raises:
        CheckpointError: if transformers cannot hold the model: window tokenizer, or
            other rotary periods than the released ones.
    """
    if any('tokenizer.' in key for key in state):
        raise CheckpointError('transformers has no window tokenizer (4K models)')
    prefix = '' if task == 'pretrain' else 'backbone.'
    state = dict(state)
    periods = state.pop(prefix + PERIODS, None)
    if periods is not None and not torch.equal(
        periods.bfloat16(), released_periods(state, prefix)
    ):
        raise CheckpointError(
            f'{prefix + PERIODS} differs from the released table, which is the only '
            'one transformers knows'
        )
    return official_to_transformers(task).forward(state)


def released_periods(state: dict[str, Tensor], prefix: str) -> Tensor:
    """The bf16 table that every released file holds, for these weights."""
    head_dims = len(state[f'{prefix}blocks.0.attn.q_norm.weight'])
    steps = torch.arange(head_dims // 4, dtype=torch.bfloat16)
    return 100.0 ** (4 * steps / head_dims)


def to_our_names(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Our names for weights in any layout, for loaders that do not see the model.

    Weights that are not known to be of a Sapiens2 model are returned as they are.
    """
    if is_transformers(state):
        tensors = {k: v for k, v in state.items() if isinstance(v, Tensor)}
        task = task_of(tensors)
        if task is None:
            return state
        state = from_transformers(tensors, task)
    if 'backbone.layers.0.attn.qkv.weight' in state:
        return with_our_predictor(state)
    if 'backbone.storage_tokens' in state and _HEAD + 'conv_pose.weight' in state:
        old, new = _HEAD, 'head.'
        return {
            new + key[len(old) :] if key.startswith(old) else key: value
            for key, value in state.items()
        }
    return state


def is_transformers(state: dict[str, Tensor]) -> bool:
    return any(key.endswith('embeddings.register_tokens') for key in state)


def task_of(state: dict[str, Tensor]) -> str | None:
    """The task of weights in any layout; None if the keys do not tell.

    Files of transformers call every predictor alike; there the number of channels
    decides, with the released numbers.
    """
    for task in TASKS[1:]:
        if any(f'head.conv_{task}.' in key for key in state):
            return task
    predictor = state.get('decode_head.predictor.weight')
    if predictor is None:
        heads = [k for k in state if k.startswith(('decode_head.', 'head.'))]
        return None if heads else 'pretrain'
    if any(key.startswith('scale_head.') for key in state):
        return 'pointmap'
    channels = len(predictor) if predictor.ndim else 0
    if 'decode_head.input_conv.convolution.weight' in state:
        return {3: 'normal', 4: 'matting'}.get(channels)
    return {308: 'pose', 29: 'seg'}.get(channels)


def without_wrappers(key: str) -> str:
    """The name without what compilation or sharding put into it."""
    for wrapper in _WRAPPERS:
        key = key.replace(wrapper, '')
    return key


def backbone_prefixes(
    keys: Iterable[str], generations: Iterable[str] = tuple(GENERATIONS)
) -> list[str]:
    """What stands before the keys of each backbone.

    Args:
        keys: of weights.
        generations: of ``GENERATIONS``, those to look for.
    """
    keys = set(keys)
    return [
        key.removesuffix(first)
        for first, second in (GENERATIONS[name] for name in generations)
        for key in sorted(keys)
        if key.endswith(first) and key.removesuffix(first) + second in keys
    ]


def generation(keys: Iterable[str]) -> str | None:
    """That of the backbone among ``keys``; None without one."""
    keys = set(keys)
    found = (name for name in GENERATIONS if backbone_prefixes(keys, [name]))
    return next(found, None)
