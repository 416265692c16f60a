"""Rewrite a checkpoint in another layout."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from mmengine.logging import print_log
from safetensors.torch import save_file
from torch import Tensor

from ..errors import CheckpointError
from ..io.atomic import replacing, write_atomically
from ..io.reader import read_checkpoint
from ..matching import backbone_prefixes, listed, without_wrappers
from .names import (
    LAYOUTS,
    PERIODS,
    TASKS,
    from_transformers,
    is_transformers,
    official_to_ours,
    released_periods,
    task_of,
    to_transformers,
)

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
_FILES = ('.safetensors', '.pth', '.pt', '.bin', '.ckpt', '.json')
_TRANSFORMERS_CLASSES = {
    'pretrain': 'Sapiens2Model',
    'pose': 'Sapiens2ForPoseEstimation',
    'seg': 'Sapiens2ForSemanticSegmentation',
    'normal': 'Sapiens2ForNormalEstimation',
    'pointmap': 'Sapiens2ForPointmapEstimation',
    'matting': 'Sapiens2ForImageMatting',
}


@dataclass
class OfficialWeights:
    """Weights with official names.

    Args:
        state: the tensors.
        task: one of ``layouts.TASKS``.
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
        blocks = {
            int(key.removeprefix(start).split('.')[1])
            for key in weights
            if key.startswith(start + 'blocks.')
        }
        head_dims = weights[start + 'blocks.0.attn.q_norm.weight'].shape[0]
        return dict(
            embed_dims=channels[0],
            num_layers=len(blocks),
            num_heads=channels[0] // head_dims,
            feedforward_channels=weights[start + 'blocks.0.ffn.w3.weight'].shape[1],
            patch_size=channels[-1],
        )

    def arch(self) -> str:
        """The name of the size; ``custom`` if it is none of the released ones."""
        from sapiens2_mm.models.backbones.arch import ARCHS  # imports this package

        sizes = self.sizes()
        for name, arch in ARCHS.items():
            if all(
                getattr(arch, field) == sizes[field]
                for field in ('embed_dims', 'num_layers', 'num_heads')
            ):
                has_tokenizer = any('tokenizer.' in key for key in self.state)
                return f'{name}_4k' if has_tokenizer else name
        return 'custom'


def convert_checkpoint(
    source: str | Path,
    destination: str | Path,
    to: str,
    dtype: torch.dtype | None = None,
    task: str | None = None,
) -> dict[str, str]:
    """Write a checkpoint as safetensors with the names of another layout.

    Args:
        source: any form ``read_checkpoint`` reads, in any layout.
        destination: a ``.safetensors`` file. For ``transformers`` it may be a folder,
            which then gets ``model.safetensors`` and ``config.json`` and can be given
            to ``from_pretrained``.
        to: ``'official'``, ``'ours'`` or ``'transformers'``.
        dtype: of the floating weights; None keeps theirs. Rotary periods keep theirs.
        task: one of ``layouts.TASKS``. Needed where the keys do not tell, in a file of
            transformers with other numbers of channels than the released ones;
            ``'pretrain'`` takes the backbone alone.

    Returns:
        The text entries of the written header: layout, arch, task, source and sizes.

    Raises:
        CheckpointError: if the checkpoint is no Sapiens2 model, or the layout cannot
            hold it.
    """
    if to not in LAYOUTS:
        raise CheckpointError(f'unknown layout {to!r}; use one of {list(LAYOUTS)}')
    destination = Path(destination)
    as_folder = to == 'transformers' and destination.suffix not in _FILES
    if destination.suffix != '.safetensors' and not as_folder:
        raise CheckpointError(f'{destination} must end with .safetensors')
    if destination.exists() and destination.is_dir() != as_folder:
        kind = 'file' if as_folder else 'folder'
        raise CheckpointError(f'{destination} is a {kind} already; name another one')
    weights = to_official(read_checkpoint(source)['state_dict'], str(source), task)
    _check_complete(weights, str(source))
    entries = {
        'format': 'pt',
        'layout': to,
        'arch': weights.arch(),
        'task': weights.task,
        'source': Path(source).name if Path(source).exists() else str(source),
        **{name: str(value) for name, value in weights.sizes().items()},
    }
    if to == 'official':
        state = weights.state
    elif to == 'ours':
        state = official_to_ours(weights.task).forward(weights.state)
    else:
        state = to_transformers(weights.state, weights.task)
    if dtype is not None:
        state = {
            key: value.to(dtype)
            if value.is_floating_point() and not key.endswith(PERIODS)
            else value
            for key, value in state.items()
        }
    path = destination / 'model.safetensors' if as_folder else destination
    with replacing(path) as temporary:
        save_file(_apart(state), temporary, metadata=entries)
    if as_folder:
        dtypes = {str(v.dtype).removeprefix('torch.') for v in state.values()}
        config = _transformers_config(weights, dtypes)
        text = json.dumps(config, indent=2) + '\n'
        write_atomically(destination / 'config.json', text.encode())
    return entries


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
                f'the keys of {source} do not tell its task; name it, one of '
                f'{list(TASKS)}'
            )
        weights = OfficialWeights(from_transformers(state, task), task)
        start = weights.prefix
        weights.state[start + PERIODS] = released_periods(weights.state, start)
        return weights
    prefixes = backbone_prefixes(state)
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
        raise CheckpointError(
            f'{source} holds a {found or "pretrain"} model, not a {task} one; leave '
            'the task out'
        )
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


def _check_complete(weights: OfficialWeights, source: str) -> None:
    state, start = weights.state, weights.prefix
    blocks: dict[int, set[str]] = {}
    for key in state:
        if key.startswith(start + 'blocks.'):
            number, _, name = key[len(start) + len('blocks.') :].partition('.')
            blocks.setdefault(int(number), set()).add(name)
    needed = [start + name for name in _NEEDED]
    needed += [
        f'{start}blocks.{number}.{name}'
        for number in range(max(blocks, default=0) + 1)
        for name in sorted(set().union(*blocks.values()))
    ]
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
    layers = [('deconv_layers', w.shape[:2]) for w in _layers(state, 'deconv_layers')]
    for name, factor in (('upsample_blocks', 4), ('conv_layers', 1)):
        layers += [
            (name, (w.shape[1], w.shape[0] // factor))
            for w in _layers(state, name)
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


def _apart(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same weights without gaps and shared memory, which safetensors refuses."""
    out, seen = {}, set()
    for key, value in state.items():
        value = value.contiguous()
        out[key] = value.clone() if value.data_ptr() in seen else value
        seen.add(value.data_ptr())
    return out


def _under(
    state: dict[str, Tensor], outer: str, names: Iterable[str]
) -> dict[str, Tensor]:
    starts = tuple(outer + name for name in names)
    return {key: value for key, value in state.items() if key.startswith(starts)}


def _transformers_config(weights: OfficialWeights, dtypes: set[str]) -> dict:
    sizes, state, start = weights.sizes(), weights.state, weights.prefix
    head_dims = sizes['embed_dims'] // sizes['num_heads']
    kv_heads = [
        state[f'{start}blocks.{n}.attn.wk.weight'].shape[0] // head_dims
        for n in range(sizes['num_layers'])
    ]
    config = dict(
        model_type='sapiens2',
        architectures=[_TRANSFORMERS_CLASSES[weights.task]],
        hidden_size=sizes['embed_dims'],
        intermediate_size=sizes['feedforward_channels'],
        num_hidden_layers=sizes['num_layers'],
        num_attention_heads=sizes['num_heads'],
        num_key_value_heads_per_layer=kv_heads,
        num_register_tokens=state[start + 'storage_tokens'].shape[1],
        patch_size=sizes['patch_size'],
        image_size=[1024, 768],
        key_bias=True,
        use_gated_mlp=True,
        layerscale_value=1e-4,
        pos_embed_rescale=None,
        normalize_backbone_outputs=False,
        dtype=dtypes.pop() if len(dtypes) == 1 else 'float32',
    )
    if weights.task != 'pretrain':
        channels = state[f'decode_head.conv_{weights.task}.weight'].shape[0]
        labels = {str(index): f'LABEL_{index}' for index in range(channels)}
        config['id2label'] = labels
        config['label2id'] = {name: int(index) for index, name in labels.items()}
        config['head_config'] = _head_config(weights)
    return config


def _head_config(weights: OfficialWeights) -> dict:
    state = weights.state
    refine = _layers(state, 'conv_layers')
    if weights.task in ('pose', 'seg'):
        # a transposed convolution: (in, out, kernel, kernel)
        deconv = _layers(state, 'deconv_layers')
        return dict(
            upsample_out_channels=[layer.shape[1] for layer in deconv],
            upsample_kernel_sizes=[layer.shape[2] for layer in deconv],
            conv_out_channels=[layer.shape[0] for layer in refine],
            conv_kernel_sizes=[layer.shape[2] for layer in refine],
        )
    upsample = _layers(state, 'upsample_blocks')
    config = dict(
        use_pixel_shuffle=True,
        upsample_out_channels=[layer.shape[0] // 4 for layer in upsample],
        upsample_kernel_sizes=[layer.shape[2] for layer in upsample],
        conv_out_channels=[layer.shape[0] for layer in refine],
        conv_kernel_sizes=[layer.shape[2] for layer in refine],
    )
    if weights.task == 'pointmap':
        scale, final = _layers(state, 'scale_conv_layers'), 'scale_final_layer'
        config.update(
            scale_conv_out_channels=[layer.shape[0] for layer in scale],
            scale_conv_kernel_sizes=[layer.shape[2] for layer in scale],
            scale_final_input_size=_layers(state, final)[0].shape[1],
            scale_final_hidden_sizes=[w.shape[0] for w in _layers(state, final)[:-1]],
        )
    return config


def _layers(state: dict[str, Tensor], name: str) -> list[Tensor]:
    """The convolution or linear weights of a sequence, in order."""
    start = f'decode_head.{name}.'
    keys = [k for k in state if k.startswith(start) and k.endswith('.weight')]
    return [
        state[k] for k in sorted(keys, key=lambda k: int(k[len(start) :].split('.')[0]))
    ]
