"""Mixed precision that needs neither a GPU nor a gradient scaler."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from mmengine.optim import OptimWrapper
from torch import nn

from sapiens2_mm.registry import OPTIM_WRAPPERS


@OPTIM_WRAPPERS.register_module()
class AutocastOptimWrapper(OptimWrapper):
    """Runs the forward pass under ``torch.autocast`` on the model's own device.

    bfloat16 has the exponent range of float32, so losses are not scaled, and the
    same run works on the CPU. Parameters, gradients and optimizer state stay in
    float32.

    Args:
        dtype: ``bfloat16``; for ``float16``, whose gradients need scaling, use
            mmengine's ``AmpOptimWrapper``.
        **kwargs: as for :class:`mmengine.optim.OptimWrapper`.

    Raises:
        ValueError: if ``dtype`` is not ``bfloat16``.
    """

    def __init__(self, dtype: str = 'bfloat16', **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if dtype != 'bfloat16':
            raise ValueError(
                f"AutocastOptimWrapper: dtype must be 'bfloat16', got {dtype!r}; "
                "use mmengine's AmpOptimWrapper for float16 on a GPU"
            )
        self.cast_dtype = torch.bfloat16

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        device_type = next(model.parameters()).device.type
        with (
            super().optim_context(model),
            torch.autocast(device_type, dtype=self.cast_dtype),
        ):
            yield
