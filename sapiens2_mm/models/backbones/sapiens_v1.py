"""The backbone of the first Sapiens [mmpretrain]."""

from collections.abc import Sequence
from contextlib import nullcontext
from math import isqrt
from typing import Any, Literal

import torch
from mmpretrain.models import VisionTransformer
from mmpretrain.models.utils import resize_pos_embed
from torch import Tensor, nn

from sapiens2_mm.checkpoint import SkipInit, load_backbone
from sapiens2_mm.registry import MODELS

from ..layers.positions import sincos_positions
from .init import pretrained_cfg

_NUMBERS = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')
ARCHS = {
    'sapiens_0.3b': dict(zip(_NUMBERS, (1024, 24, 16, 4096), strict=True)),
    'sapiens_0.6b': dict(zip(_NUMBERS, (1280, 32, 16, 5120), strict=True)),
    'sapiens_1b': dict(zip(_NUMBERS, (1536, 40, 24, 6144), strict=True)),
    'sapiens_2b': dict(zip(_NUMBERS, (1920, 48, 32, 7680), strict=True)),
}


@MODELS.register_module()
class SapiensV1(VisionTransformer):
    """mmpretrain's ``VisionTransformer`` in the sizes and forms of the first Sapiens.

    The released files of pretraining have a class token and square images, those of
    the tasks neither; loading drops the token and resizes the position embedding.

    ``patch_padding`` is no weight: with the wrong one a file loads and every number
    differs. Files that tell it are refused then, for others the log says what is set.

    Args:
        arch: ``'sapiens_0.3b'``, ``'sapiens_0.6b'``, ``'sapiens_1b'``,
            ``'sapiens_2b'`` (any case), or a dict of ``embed_dims``, ``num_layers``,
            ``num_heads`` and ``feedforward_channels``.
        img_size: (height, width) of the learned position embedding. Other input sizes
            resize it (bicubic).
        patch_size: side of a patch in pixels.
        patch_padding: zeros around the image before it is cut into patches: 2 pixels
            on each side in the released pose and normal models; ``'corner'``, up to a
            multiple of the patch at the bottom and right, in all others.
        with_cls_token: put a class token, with a position, before the patches.
        out_type: ``'featmap'`` patches only, (B, C, h, w); ``'raw'`` all tokens;
            ``'cls_token'`` (B, C), which needs the token.
        out_indices: block or blocks whose output is returned; negative counts from
            the end. The final norm is applied to the last block's output only.
        fixed_positions: fill the position embedding with sines and cosines, the class
            token's with 0, and do not train it, as in pretraining.
        frozen_stages: n > 0 freezes embedding, tokens and the first n blocks.
        drop_path_rate: stochastic depth of the last block, growing linearly from 0.
        init_cfg: mmengine's; ``type='Pretrained'`` takes any checkpoint that holds a
            backbone, see ``sapiens2_mm.checkpoint``.

    Raises:
        ValueError: on an unknown size; when loading, if the position embedding is of
            no square or 4:3 grid, or lacks the class token's row.

    Source: Sapiens (arXiv 2408.12569) and its released models; mmpretrain 1.2.
    """

    arch_zoo = ARCHS

    def __init__(
        self,
        arch: str | dict = 'sapiens_0.3b',
        img_size: int | tuple[int, int] = (1024, 768),
        patch_size: int = 16,
        patch_padding: int | Literal['corner'] = 'corner',
        with_cls_token: bool = False,
        out_type: str = 'featmap',
        out_indices: int | Sequence[int] = -1,
        fixed_positions: bool = False,
        frozen_stages: int = -1,
        drop_path_rate: float = 0.0,
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        if isinstance(arch, str) and arch.lower() not in ARCHS:
            raise ValueError(f'SapiensV1: arch {arch!r} is none of {list(ARCHS)}')
        draws = nullcontext() if pretrained_cfg(init_cfg) is None else SkipInit()
        with draws:
            super().__init__(
                arch,
                img_size,
                patch_size,
                out_indices=(
                    out_indices if isinstance(out_indices, int) else list(out_indices)
                ),
                drop_path_rate=drop_path_rate,
                out_type=out_type,
                with_cls_token=with_cls_token,
                frozen_stages=frozen_stages,
                patch_cfg=dict(padding=patch_padding),
                init_cfg=init_cfg,
            )
        self.stride = patch_size
        self.patch_padding = patch_padding
        self.num_prefix_tokens = self.num_extra_tokens
        self.fixed_positions = fixed_positions
        if fixed_positions:
            self.pos_embed.requires_grad_(False)
        self._register_state_dict_hook(_note_patch_padding)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Encode (B, 3, H, W) images; one tensor per index, shape by ``out_type``."""
        tokens, rope, grid = self.embed(x)
        return tuple(self._format_output(y, grid) for y in self.encode(tokens, rope))

    def embed(
        self, x: Tensor, ids_keep: Tensor | None = None
    ) -> tuple[Tensor, tuple, tuple[int, int]]:
        """As ``Sapiens2.embed``, without rotary tables.

        Args:
            x: (B, 3, H, W).
            ids_keep: (B, n) long, patches to encode; None keeps all.

        Returns:
            Tokens (B, [1 +] n, C), an empty tuple, and the grid (h, w) of all patches.
        """
        patches, grid = self.patch_embed(x)
        prefix = self.num_prefix_tokens
        positions = resize_pos_embed(
            self.pos_embed, self.patch_resolution, grid, 'bicubic', prefix
        )
        tokens = patches + positions[:, prefix:]
        if ids_keep is not None:
            tokens = tokens[torch.arange(len(x), device=x.device)[:, None], ids_keep]
        if self.with_cls_token:
            cls_token = self.cls_token + positions[:, :1]
            tokens = torch.cat((cls_token.expand(len(x), -1, -1), tokens), dim=1)
        return tokens, (), grid

    def encode(self, tokens: Tensor, rope: tuple = ()) -> list[Tensor]:
        """Run the blocks on the tokens of ``embed``; all tokens, one per index."""
        outs = []
        for index, layer in enumerate(self.layers):
            tokens = layer(tokens)
            if index in self.out_indices:
                last = index == self.num_layers - 1
                outs.append(self.ln1(tokens) if last else tokens)
        return outs

    def train(self, mode: bool = True) -> 'SapiensV1':
        super().train(mode)  # mmpretrain's returns nothing
        if self.frozen_stages > 0:
            self._freeze_stages()
        return self

    def init_weights(self) -> None:
        """Fill all parameters, from the checkpoint of ``init_cfg`` if it names one.

        Raises:
            CheckpointError: if the checkpoint does not fill the whole backbone.
        """
        pretrained = pretrained_cfg(self.init_cfg)
        if pretrained is not None:
            load_backbone(self, pretrained['checkpoint'], pretrained.get('prefix'))
            self.is_init = True
            return
        super().init_weights()
        nn.init.xavier_uniform_(self.patch_embed.projection.weight.flatten(1))
        if self.with_cls_token:
            nn.init.normal_(self.cls_token, std=0.02)
        if self.fixed_positions:
            table = sincos_positions(self.patch_resolution, self.embed_dims)
            self.pos_embed.data.zero_()[0, self.num_prefix_tokens :] = table

    def _prepare_pos_embed(self, state_dict: dict, prefix: str, *_: Any) -> None:
        """mmpretrain's hook before loading; its own knows square grids only."""
        if not self.with_cls_token:
            state_dict.pop(f'{prefix}cls_token', None)
        name = f'{prefix}pos_embed'
        if name in state_dict:
            table, own = state_dict[name], self.patch_resolution
            grid, num_tokens = _source_grid(table.shape[1], own)
            if num_tokens < self.num_prefix_tokens or grid is None:
                raise ValueError(
                    f'SapiensV1: {name} of the checkpoint has {table.shape[1]} rows; '
                    'expected a square or 4:3 (height:width) grid, and a row for the '
                    'class token if with_cls_token=True'
                )
            table = table[:, num_tokens - self.num_prefix_tokens :]
            state_dict[name] = resize_pos_embed(
                table, grid, own, 'bicubic', self.num_prefix_tokens
            )


def _source_grid(
    num_rows: int, own: tuple[int, int]
) -> tuple[tuple[int, int] | None, int]:
    """(height, width) of the grid that a position embedding was made for, None if it
    cannot be told, and its number of class tokens."""
    for num_tokens in (0, 1):
        if num_rows - num_tokens == own[0] * own[1]:
            return own, num_tokens
    for num_tokens in (0, 1):
        count = num_rows - num_tokens
        side, quarter = isqrt(count), isqrt(count // 12)
        for height, width in ((side, side), (4 * quarter, 3 * quarter)):
            if height * width == count:
                return (height, width), num_tokens
    return None, 0


def _note_patch_padding(
    backbone: SapiensV1, state_dict: dict, prefix: str, local_metadata: dict
) -> None:
    """Let what torch saves beside the weights tell the padding."""
    local_metadata['patch_padding'] = backbone.patch_padding
