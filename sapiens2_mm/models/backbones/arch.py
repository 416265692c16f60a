"""Sizes of the Sapiens2 backbone."""

from dataclasses import dataclass, fields
from math import inf

from .checks import are_ints

_NUM_FULL_BLOCKS = 8  # at each end; the blocks between share keys and values


@dataclass(frozen=True)
class Arch:
    """Numbers that define one size.

    Args:
        embed_dims: C.
        num_layers: blocks.
        num_heads: attention heads.
        feedforward_channels: hidden channels of the SwiGLU.
        num_tokenizer_layers: blocks of the window tokenizer, if it is used.
    """

    embed_dims: int
    num_layers: int
    num_heads: int
    feedforward_channels: int
    num_tokenizer_layers: int = 2

    @property
    def head_dims(self) -> int:
        return self.embed_dims // self.num_heads

    def num_kv_heads(self, index: int) -> int:
        """Key/value heads of block ``index``: all of them in the first and last 8
        blocks, half of them between."""
        if _NUM_FULL_BLOCKS <= index < self.num_layers - _NUM_FULL_BLOCKS:
            return self.num_heads // 2
        return self.num_heads


ARCHS = {
    'sapiens2_0.1b': Arch(768, 12, 12, 3072, 2),
    'sapiens2_0.4b': Arch(1024, 24, 16, 4096, 2),
    'sapiens2_0.8b': Arch(1280, 32, 16, 5120, 3),
    'sapiens2_1b': Arch(1536, 40, 24, 6144, 4),
    'sapiens2_5b': Arch(2432, 56, 32, 9728, 6),
}


def parse_arch(arch: str | dict) -> Arch:
    """Look a name up (upper or lower case), or take a dict of numbers.

    Raises:
        ValueError: on an unknown name, a missing or unknown key, a number that is no
            positive int, or numbers that do not fit together.
    """
    if isinstance(arch, str) and arch.lower() in ARCHS:
        return ARCHS[arch.lower()]
    keys = [field.name for field in fields(Arch)]
    numbers = arch if isinstance(arch, dict) else {}
    missing = [key for key in keys[:-1] if key not in numbers]
    unknown = [key for key in numbers if key not in keys]
    if missing or unknown or not are_ints(numbers.values(), 1, inf):
        raise ValueError(
            f'Sapiens2: unknown arch {arch!r}; use one of {list(ARCHS)} or a dict of '
            f'positive ints; missing {missing}, unknown {unknown}'
        )
    sizes = Arch(**numbers)
    shares_keys = sizes.num_layers > 2 * _NUM_FULL_BLOCKS
    multiple = 4 * sizes.num_heads
    if sizes.embed_dims % multiple or (shares_keys and sizes.num_heads % 2):
        raise ValueError(
            f'Sapiens2: embed_dims {sizes.embed_dims} must be a multiple of 4 * '
            f'num_heads = {multiple} (rotary positions), and num_heads even if there '
            'are more than 16 blocks (shared keys and values)'
        )
    return sizes
