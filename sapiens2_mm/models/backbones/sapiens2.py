"""The Sapiens2 vision transformer."""

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import torch
from mmengine.model import BaseModule
from mmengine.utils import to_2tuple
from torch import Tensor, nn

from sapiens2_mm.checkpoint import SkipInit, load_backbone
from sapiens2_mm.registry import MODELS

from ..layers import (
    PatchEmbed,
    RMSNorm,
    RotaryEmbedding,
    TransformerBlock,
    WindowTokenizer,
)
from .arch import parse_arch
from .checks import check_ids_keep, check_options, check_size, check_state_dict
from .init import init_backbone, pretrained_cfg

NUM_STORAGE_TOKENS = 8
_BEFORE_BLOCKS = ('patch_embed', 'tokenizer', 'cls_token', 'storage_tokens')


@MODELS.register_module()
class Sapiens2(BaseModule):
    """Vision transformer with rotary positions, grouped attention and SwiGLU.

    Tokens are one class token, 8 storage tokens, then the patches row by row. Any
    input size that is a multiple of the patch size works with any weights, because
    positions are rotary.

    Args:
        arch: ``'sapiens2_0.1b'``, ``'sapiens2_0.4b'``, ``'sapiens2_0.8b'``,
            ``'sapiens2_1b'``, ``'sapiens2_5b'`` (any case), or a dict of
            ``embed_dims``, ``num_layers``, ``num_heads``, ``feedforward_channels``
            and, for the tokenizer, ``num_tokenizer_layers`` (default 2).
        img_size: (height, width) the model is meant for. Only checked, at build.
        patch_size: side of a patch in pixels.
        in_channels: image channels.
        out_indices: block or blocks whose output is returned; negative counts from
            the end. Outputs come in block order, one per index, repeated ones too.
            Blocks after the last one wanted are neither run nor trained.
        out_type: ``'raw'`` all tokens (B, 1+8+h*w, C); ``'cls_token'`` (B, C);
            ``'featmap'`` patches only, (B, C, h, w).
        rope_dtype: precision of the rotary tables, ``'bf16'`` as released or
            ``'fp32'``; independent of the model's dtype, see ``RotaryEmbedding``.
        rope_shift, rope_jitter, rope_rescale: coordinate augmentation while training,
            see ``RotaryEmbedding``; None is off.
        frozen_stages: n > 0 freezes embedding, tokens, tokenizer and the first n
            blocks: no gradient, evaluation mode, also after ``train()``. n equal to
            the number of blocks freezes the final norm too. -1 and 0 freeze nothing.
        drop_path_rate: stochastic depth of the last block, growing linearly from 0.
        layer_scale_init_value: start of the learned channel scale on the attention of
            every block; a checkpoint brings its own. 0 builds none.
        use_tokenizer: pool windows of patches by ``WindowTokenizer`` first (4K).
        window_size: side of such a window in patches.
        window_bytes: memory that the activations of the windows may take at once; a
            smaller budget takes more passes and gives the same result.
        init_cfg: mmengine's; ``type='Pretrained'`` takes any checkpoint that holds a
            backbone, see ``sapiens2_mm.checkpoint``; random filling is skipped, and
            ``init_weights()`` must be called before use. ``allow_missing`` in it names
            weights that may start untrained: ``['*tokenizer.*']``, from 1K to 4K.

    Raises:
        ValueError: on a value that is not listed above, or an image size that is no
            multiple of the patch (times the window) size.

    Source: Sapiens2 (arXiv 2604.21681) section 4 and its released backbone. Unlike it,
        sizes that do not fit the patch are refused instead of cropped.
    """

    def __init__(
        self,
        arch: str | dict = 'sapiens2_0.1b',
        img_size: int | tuple[int, int] = (1024, 768),
        patch_size: int = 16,
        in_channels: int = 3,
        out_indices: int | Sequence[int] = -1,
        out_type: str = 'raw',
        rope_dtype: str = 'bf16',
        rope_shift: float | None = None,
        rope_jitter: float | None = None,
        rope_rescale: float | None = None,
        frozen_stages: int = -1,
        drop_path_rate: float = 0.0,
        layer_scale_init_value: float = 1e-4,
        use_tokenizer: bool = False,
        window_size: int = 4,
        window_bytes: int = 2**30,
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        super().__init__(init_cfg)
        sizes = parse_arch(arch)
        self.embed_dims = sizes.embed_dims
        self.num_layers = sizes.num_layers
        window = window_size if use_tokenizer else 1
        options = (out_indices, out_type, frozen_stages, drop_path_rate)
        options += (layer_scale_init_value,)
        check_options(self.num_layers, img_size, patch_size, window, *options)
        self.patch_size = patch_size
        self.use_tokenizer = use_tokenizer
        self.stride = patch_size * window
        self.img_size = to_2tuple(img_size)
        check_size('img_size', self.img_size, patch_size, self.stride)
        indices = [out_indices] if isinstance(out_indices, int) else out_indices
        self.out_indices = tuple(sorted(index % self.num_layers for index in indices))
        self.out_type = out_type
        self.frozen_stages = frozen_stages

        self.patch_embed = PatchEmbed(in_channels, self.embed_dims, patch_size)
        if use_tokenizer:
            self.tokenizer = WindowTokenizer(
                self.embed_dims,
                sizes.num_heads,
                sizes.num_tokenizer_layers,
                window_size,
                window_bytes,
            )
        self.cls_token = nn.Parameter(torch.zeros(1, 1, self.embed_dims))
        self.storage_tokens = nn.Parameter(
            torch.zeros(1, NUM_STORAGE_TOKENS, self.embed_dims)
        )
        self.num_prefix_tokens = 1 + NUM_STORAGE_TOKENS
        self.rope_embed = RotaryEmbedding(
            sizes.head_dims,
            self.num_prefix_tokens,
            dtype=rope_dtype,
            shift=rope_shift,
            jitter=rope_jitter,
            rescale=rope_rescale,
        )
        drop_path_rates = np.linspace(0, drop_path_rate, self.num_layers).tolist()
        # Random numbers that init_weights() replaces by a checkpoint take long to draw.
        draws = nullcontext() if pretrained_cfg(init_cfg) is None else SkipInit()
        with draws:
            self.blocks = nn.ModuleList(
                TransformerBlock(
                    self.embed_dims,
                    sizes.num_heads,
                    sizes.num_kv_heads(index),
                    sizes.feedforward_channels,
                    layer_scale_init_value=layer_scale_init_value,
                    drop_path_rate=drop_path_rates[index],
                )
                for index in range(self.num_layers)
            )
        self.ln1 = RMSNorm(self.embed_dims)
        self._freeze()

    def forward(self, x: Tensor, ids_keep: Tensor | None = None) -> tuple[Tensor, ...]:
        """Encode images.

        Args:
            x: (B, in_channels, H, W), sides multiples of ``stride``.
            ids_keep: (B, n) long, patches of each image to encode, counted row by row
                (windows, if there is a tokenizer). The others are dropped before the
                first block. None keeps all.

        Returns:
            One tensor per entry of ``out_indices``, shape by ``out_type``. The final
            norm is applied to the last block's output only.

        Raises:
            ValueError: if a side does not fit the patches, ``ids_keep`` does not fit
                the grid, or a feature map of a subset is asked for.
        """
        if ids_keep is not None and self.out_type == 'featmap':
            raise ValueError("Sapiens2: ids_keep needs out_type 'raw' or 'cls_token'")
        tokens, rope, grid = self.embed(x, ids_keep)
        return tuple(self._format(y, grid) for y in self.encode(tokens, rope))

    def embed(
        self, x: Tensor, ids_keep: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor], tuple[int, int]]:
        """The part of ``forward`` before the blocks.

        Returns:
            Tokens (B, 1+8+n, C); rotary tables (1, 1+8+n, D), with ``ids_keep``
            (B, 1, 1+8+n, D); grid (h, w) of all tokens. Tokens and tables of several
            calls with equal n may be joined along B and encoded at once.
        """
        size = tuple(x.shape[2:])
        check_size('input size', size, self.patch_size, self.stride)
        x, grid = self.patch_embed(x)
        if ids_keep is not None:
            check_ids_keep(ids_keep, len(x), size[0] * size[1] // self.stride**2)
        if self.use_tokenizer:
            x, grid = self.tokenizer(x, grid, ids_keep)
        elif ids_keep is not None:
            x = x[torch.arange(x.shape[0], device=x.device)[:, None], ids_keep]
        prefix = (self.cls_token, self.storage_tokens)
        x = torch.cat((*(t.expand(x.shape[0], -1, -1) for t in prefix), x), dim=1)
        rope = self.rope_embed(grid)
        if ids_keep is not None:
            rows = torch.arange(self.num_prefix_tokens, device=x.device)
            rows = torch.cat(
                (rows.expand(x.shape[0], -1), ids_keep + self.num_prefix_tokens), dim=1
            )
            rope = tuple(table[0, rows].unsqueeze(1) for table in rope)
        return x, rope, grid

    def encode(self, tokens: Tensor, rope: tuple[Tensor, Tensor]) -> list[Tensor]:
        """Run the blocks on the results of ``embed``; all tokens, one per index."""
        outs = []
        for index, block in enumerate(self.blocks[: self.out_indices[-1] + 1]):
            tokens = block(tokens, rope)
            if index in self.out_indices:
                last = index == self.num_layers - 1
                out = self.ln1(tokens) if last else tokens
                outs += [out] * self.out_indices.count(index)
        return outs

    def _format(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        if self.out_type == 'cls_token':
            return tokens[:, 0]
        if self.out_type == 'featmap':
            patches = tokens[:, self.num_prefix_tokens :].transpose(1, 2)
            return patches.unflatten(2, grid).contiguous()
        return tokens

    def train(self, mode: bool = True) -> 'Sapiens2':
        super().train(mode)
        self._freeze()
        return self

    def _freeze(self) -> None:
        # A distributed wrapper would wait for the gradients of what is not run.
        last = self.out_indices[-1]
        self.blocks[last + 1 :].requires_grad_(False)
        if last < self.num_layers - 1:
            self.ln1.requires_grad_(False)
        if self.frozen_stages <= 0:
            return
        self.cls_token.requires_grad_(False)
        self.storage_tokens.requires_grad_(False)
        frozen = [self.patch_embed, *self.blocks[: self.frozen_stages]]
        if self.use_tokenizer:
            frozen.append(self.tokenizer)
        if self.frozen_stages == self.num_layers:
            frozen.append(self.ln1)
        for module in frozen:
            module.eval().requires_grad_(False)

    def init_weights(self) -> None:
        """Fill all parameters, from the checkpoint of ``init_cfg`` if it names one.

        Raises:
            CheckpointError: if the checkpoint does not fill the whole backbone.
        """
        pretrained = pretrained_cfg(self.init_cfg) or {}
        allowed = pretrained.get('allow_missing', ())
        if not pretrained or allowed:
            init_backbone(self)
        if pretrained:
            source, prefix = pretrained['checkpoint'], pretrained.get('prefix')
            load_backbone(self, source, prefix, allowed)
            self.is_init = True
        else:
            super().init_weights()

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter for layer-wise learning rate decay.

        Args:
            param_name: full name of the parameter.
            prefix: what comes before the names of this module, e.g. ``'backbone.'``.

        Returns:
            0 for patch embedding, tokenizer and tokens, n + 1 for block n, number of
            blocks + 1 for the rest; and the number of depths.
        """
        num_depths = self.num_layers + 2
        if param_name.startswith(prefix):
            name = param_name[len(prefix) :]
            if name.startswith('blocks.'):
                return int(name.split('.')[1]) + 1, num_depths
            if name.split('.')[0] in _BEFORE_BLOCKS:
                return 0, num_depths
        return num_depths - 1, num_depths

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *args) -> None:
        check_state_dict(self, state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args)
