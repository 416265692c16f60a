"""Rotary position embedding of a 2-D patch grid."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

ROPE_DTYPES = {'bf16': torch.bfloat16, 'fp32': torch.float32}
_MAX_CACHED_TABLES = 8


def rotate(x: Tensor, table: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate queries or keys by the angles of their tokens.

    The product is formed in the dtype of the table, every operation rounded to it,
    and cast back: with a bf16 table, fp32 queries are rounded to bf16, the prefix
    tokens too, which the official numbers include.

    Args:
        x: (B, heads, N, D), any strides.
        table: cosine and signed sine of ``RotaryEmbedding``, each (1, N, D)
            or (B, 1, N, D).

    Returns:
        (B, heads, N, D), contiguous, in the dtype of ``x``. Attention over keys that
        lie apart in memory is 8 % slower on a CPU.
    """
    cos, sin = table
    dtype = x.dtype
    x = x.to(cos.dtype, memory_format=torch.contiguous_format).contiguous()
    # Halves change places by a flip: fp16 autocast refuses to join bf16 tensors.
    swapped = x.unflatten(-1, (2, -1)).flip(-2).flatten(-2)
    return swapped.mul_(sin).add_(x * cos).to(dtype)


class RotaryEmbedding(nn.Module):
    """Cosine and sine tables for the tokens of one image.

    Row ``r`` and column ``s`` of an ``h x w`` grid have the coordinates
    ``2 (r + 0.5) / h - 1`` and ``2 (s + 0.5) / w - 1``. The D angles of a patch are
    ``2 pi c / period``, D/4 for the row and D/4 for the column, that half twice.
    Dimension ``j`` is paired with ``j + D/2``.

    Precision. Periods, coordinates, angles, cosine and sine are all computed in
    ``dtype``; bf16 is what the released weights were trained with, and an fp32 table
    changes the features by about 1e-3. The persistent buffer ``periods`` therefore
    keeps its dtype and its values when the module is cast (``.float()``, ``.half()``,
    ``.to(torch.bfloat16)``); only its device follows. Loading a state dict copies the
    stored periods into that dtype, which is exact for released files.

    Tables are cached per grid and device. The cache notices changed periods, is not
    part of the state dict, and is left out of copies and pickles.

    Args:
        head_dims: D, size of one attention head; a multiple of 4.
        num_prefix_tokens: tokens before the patches; they are not rotated, their
            rows hold cosine 1 and sine 0.
        base: period range, from 1 to just under ``base``.
        dtype: ``'bf16'`` or ``'fp32'``.
        shift: while training, one offset per axis from U(-shift, shift).
        jitter: while training, one factor per axis, log-uniform in
            [1/jitter, jitter].
        rescale: while training, one factor for both axes, log-uniform in
            [1/rescale, rescale].

    Raises:
        ValueError: on an unknown dtype, or head_dims or an augmentation range that
            does not fit.

    Source: Sapiens2 (arXiv 2604.21681) and its released backbone; DINOv3
        (arXiv 2508.10104) for the training-time coordinate augmentation.
    """

    def __init__(
        self,
        head_dims: int,
        num_prefix_tokens: int = 0,
        base: float = 100.0,
        dtype: str = 'bf16',
        shift: float | None = None,
        jitter: float | None = None,
        rescale: float | None = None,
    ) -> None:
        super().__init__()
        if dtype not in ROPE_DTYPES or head_dims < 4 or head_dims % 4:
            raise ValueError(
                f'RotaryEmbedding: rope_dtype must be one of {list(ROPE_DTYPES)} and '
                f'head_dims a multiple of 4, got {dtype!r} and {head_dims}'
            )
        for name, value, low in (
            ('shift', shift, 0),
            ('jitter', jitter, 1),
            ('rescale', rescale, 1),
        ):
            if value is not None and value < low:
                text = f'RotaryEmbedding: {name} must be >= {low}, got {value}'
                raise ValueError(text)
        self.head_dims = head_dims
        self.num_prefix_tokens = num_prefix_tokens
        self.base = base
        self.dtype = ROPE_DTYPES[dtype]
        self.shift = shift
        self.jitter = jitter
        self.rescale = rescale
        self.register_buffer('periods', self._formula_periods())
        self._tables: dict[tuple, tuple[Tensor, Tensor]] = {}

    def _formula_periods(self, device: torch.device | None = None) -> Tensor:
        steps = torch.arange(self.head_dims // 4, device=device, dtype=self.dtype)
        return self.base ** (4 * steps / self.head_dims)

    def reset_parameters(self) -> None:
        self.periods.copy_(self._formula_periods(self.periods.device))

    def forward(self, grid: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """Tables for a grid of (rows, columns).

        Returns:
            Cosine and signed sine, each (1, prefix + rows * columns, D) in the rope
            dtype. The sine of the first D/2 dimensions is negated, see ``rotate``.
        """
        if self.training and self._augments:
            return self._build(self._augment(self._coordinates(grid)))
        # a traced graph must not hold the cache
        if torch.compiler.is_compiling() or torch.jit.is_tracing():
            return self._build(self._coordinates(grid))
        periods = self.periods
        version = None if periods.is_inference() else periods._version
        key = (*grid, periods.device, periods.data_ptr(), version)
        if key not in self._tables:
            while len(self._tables) >= _MAX_CACHED_TABLES:
                del self._tables[next(iter(self._tables))]
            # Tables first made under inference_mode must still serve training.
            with torch.inference_mode(False), torch.no_grad():
                self._tables[key] = self._build(self._coordinates(grid))
        return self._tables[key]

    @property
    def _augments(self) -> bool:
        return any(v is not None for v in (self.shift, self.jitter, self.rescale))

    def _coordinates(self, grid: tuple[int, int]) -> Tensor:
        """(rows * columns, 2) in (-1, 1)."""
        options = dict(device=self.periods.device, dtype=self.dtype)
        rows, columns = (torch.arange(0.5, n, **options) / n for n in grid)
        coordinates = torch.meshgrid(rows, columns, indexing='ij')
        return 2 * torch.stack(coordinates, dim=-1).flatten(0, 1) - 1

    def _augment(self, coordinates: Tensor) -> Tensor:
        def uniform(size: int, limit: float) -> Tensor:
            return coordinates.new_empty(size).uniform_(-limit, limit)

        if self.shift is not None:
            coordinates = coordinates + uniform(2, self.shift)
        if self.jitter is not None:
            coordinates = coordinates * uniform(2, math.log(self.jitter)).exp()
        if self.rescale is not None:
            coordinates = coordinates * uniform(1, math.log(self.rescale)).exp()
        return coordinates

    def _build(self, coordinates: Tensor) -> tuple[Tensor, Tensor]:
        # A wrapper may have cast the buffer behind our back: its values are kept.
        periods = self.periods.to(self.dtype)
        angles = (2 * math.pi * coordinates[:, :, None] / periods).flatten(1)
        cos, sin = angles.cos(), angles.sin()  # (N, D/2)
        cos = torch.cat((cos, cos), dim=-1)
        sin = torch.cat((-sin, sin), dim=-1)
        prefix = cos.new_zeros(self.num_prefix_tokens, self.head_dims)
        cos = torch.cat((prefix + 1, cos))
        sin = torch.cat((prefix, sin))
        return cos[None], sin[None]

    def _apply(self, fn: Callable, recurse: bool = True) -> 'RotaryEmbedding':
        kept = self.periods
        super()._apply(fn, recurse)
        device = self.periods.device
        if kept.is_meta and not self.periods.is_meta:  # to_empty() after a meta build
            self.periods = self._formula_periods(device)
        else:
            self.periods = kept.to(device)
        return self

    def __getstate__(self) -> dict:
        return {**self.__dict__, '_tables': {}}

    def extra_repr(self) -> str:
        return f'head_dims={self.head_dims}, base={self.base}, dtype={self.dtype}'
