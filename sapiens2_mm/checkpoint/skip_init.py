"""Build modules without initializing weights that a checkpoint will fill."""

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class SkipInit(TorchFunctionMode):
    """While active, constructors of layers draw no random numbers.

    A module built so must be loaded completely before use. Buffers and everything else
    a constructor computes are real.

    Args:
        on_meta: allocate what ``torch.empty`` asks for, that is the weights of torch's
            layers, on the meta device: they take no memory until a loader puts tensors
            in their place.
    """

    def __init__(self, on_meta: bool = False) -> None:
        super().__init__()
        self.on_meta = on_meta

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        is_init = getattr(func, '__module__', None) == 'torch.nn.init'
        if is_init and func.__name__ != 'constant_':
            return args[0] if args else kwargs['tensor']
        if self.on_meta and func is torch.empty and kwargs.get('device') is None:
            kwargs['device'] = 'meta'
        return func(*args, **kwargs)
