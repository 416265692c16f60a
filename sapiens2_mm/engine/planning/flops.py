"""Floating-point operations of a training step, and what a device can do of them."""

import math
import re
import time
from functools import cache
from typing import Any

import torch
from mmengine.config import Config
from torch.utils.flop_counter import FlopCounterMode

from .dry_run import build_model, dry_run, loss_of, make_inputs, views_of

_ATEN = torch.ops.aten

# Dense peak of the data sheets in TFLOP/s: bf16 or fp16, TF32, float32. The first
# expression that is found in the device's name counts.
_PEAKS = {
    r'GB200|B200': (2250, 1125, 75),
    r'H100 PCIe': (756, 378, 51),
    r'H[12]00 NVL': (835, 417, 60),
    r'H200|H100|H800|GH200': (989, 494, 67),
    r'A100|A800': (312, 156, 19.5),
    r'A10G?\b': (125, 62.5, 31.2),
    r'L40S': (362, 183, 91.6),
    r'L40\b': (181, 90.5, 90.5),
    r'L4\b': (121, 60, 30.3),
    r'RTX 6000 Ada': (364, 182, 91.1),
    r'RTX A6000': (154.8, 77.4, 38.7),
    r'RTX 4090(?! (D|Laptop))': (165.2, 82.6, 82.6),
    r'RTX 3090(?! Ti)': (71, 35.6, 35.6),
    r'V100': (125, 15.7, 15.7),
    r'\bT4\b': (65, 8.1, 8.1),
    r'MI300X': (1307, 653, 163),
}


def count_train_flops(cfg: Config) -> int:
    """Of the forward and backward pass for one image, two per multiply-add.

    Counted are products of matrices, convolutions and attention, as they are for a
    model that stores all activations: what is computed anew is work, but no progress.
    Masked tokens, views, a teacher and frozen layers count for what they cost.

    Args:
        cfg: with ``model``, and the views of pretraining in ``train_dataloader``.

    Raises:
        ValueError: if the config does not give the size of images.
    """
    views = views_of(cfg)
    with dry_run():
        model = build_model(cfg.model)
        inputs = make_inputs(views, batch_size=1)
        with count_flops() as counter:
            loss_of(model, inputs).backward()
    return counter.get_total_flops()


def count_flops() -> FlopCounterMode:
    """torch's counter, which also knows the attention of the CPU.

    The backward pass of attention counts twice the forward pass, though its kernels
    make the scores again.
    """
    return FlopCounterMode(
        display=False,
        custom_mapping={
            _ATEN._scaled_dot_product_flash_attention_for_cpu: _attention,
            _ATEN._scaled_dot_product_flash_attention_for_cpu_backward: (
                lambda grad, *shapes, **kwargs: 2 * _attention(*shapes)
            ),
        },
    )


def _attention(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> int:
    # (B, heads, N, D); shared keys and values are used once per head of the query.
    return 2 * math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def peak_flops(device: torch.device, dtype: torch.dtype) -> float | None:
    """FLOP/s that one device can do, by its data sheet; of a CPU as measured.

    Returns:
        None for a GPU that is not listed.
    """
    if device.type == 'cpu':
        return measure_matmul(dtype, torch.get_num_threads())
    if device.type != 'cuda':
        return None
    tf32 = torch.backends.cuda.matmul.allow_tf32
    return listed_peak(torch.cuda.get_device_name(device), dtype, tf32)


def listed_peak(name: str, dtype: torch.dtype, tf32: bool = False) -> float | None:
    """Dense peak FLOP/s of the GPU of that name, None if it is not listed."""
    for pattern, (half, tensor_float, single) in _PEAKS.items():
        if re.search(pattern, name):
            peak = tensor_float if tf32 else single
            return 1e12 * (peak if dtype == torch.float32 else half)
    return None


@cache
def measure_matmul(dtype: torch.dtype, num_threads: int, side: int = 1024) -> float:
    """FLOP/s of a product of square matrices on the CPU, the best of five."""
    left, right = torch.ones(2, side, side, dtype=dtype)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        left @ right
        seconds.append(time.perf_counter() - start)
    return 2 * side**3 / min(seconds)
