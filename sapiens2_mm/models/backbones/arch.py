"""Sizes of the Sapiens2 backbone."""

from dataclasses import dataclass, fields

from .checks import check_number

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
    """Look a name up (upper or lower case), or check a dict of numbers.

    Raises:
        ValueError: on an unknown name, a missing or unknown key, or numbers that do
            not fit together.
        TypeError: if ``arch`` is neither a string nor a dict, or a number is no int.
    """
    if isinstance(arch, str):
        if arch.lower() not in ARCHS:
            raise ValueError(
                f'Sapiens2: unknown arch {arch!r}; use one of {list(ARCHS)} or a dict '
                'with the keys of a size'
            )
        return ARCHS[arch.lower()]
    if not isinstance(arch, dict):
        raise TypeError(
            f'Sapiens2: arch must be a name or a dict, got {type(arch).__name__}'
        )
    known = [field.name for field in fields(Arch)]
    missing = [name for name in known[:-1] if name not in arch]
    unknown = [name for name in arch if name not in known]
    if missing or unknown:
        raise ValueError(
            f'Sapiens2: arch dict needs the keys {known[:-1]} and may have '
            f'{known[-1]!r}; missing {missing}, unknown {unknown}'
        )
    for name, value in arch.items():
        check_number(f'arch {name}', value)
        if value < 1:
            raise ValueError(f'Sapiens2: arch {name} must be positive, got {value}')
    sizes = Arch(**arch)
    if sizes.embed_dims % (4 * sizes.num_heads):
        raise ValueError(
            f'Sapiens2: embed_dims {sizes.embed_dims} must be a multiple of '
            f'4 * num_heads = {4 * sizes.num_heads}, as rotary positions need'
        )
    if sizes.num_layers > 2 * _NUM_FULL_BLOCKS and sizes.num_heads % 2:
        raise ValueError(
            f'Sapiens2: num_heads {sizes.num_heads} must be even, because blocks '
            f'{_NUM_FULL_BLOCKS} to {sizes.num_layers - _NUM_FULL_BLOCKS - 1} share '
            'keys and values between two heads'
        )
    return sizes
