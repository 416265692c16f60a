"""From logits to a label map of the original size, without the large logits."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

# Resized logits up to this many elements (64 MiB in float32) are made at once.
_MAX_ELEMENTS = 2**24


def resize_and_argmax(
    logits: Tensor,
    size: tuple[int, int],
    align_corners: bool = False,
    max_elements: int = _MAX_ELEMENTS,
    prepare: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Most likely class per pixel after a bilinear resize of the logits.

    Equal, bit for bit, to the argmax of the resized logits. A large picture is resized
    one class after the other against a running maximum, so two float planes of the
    picture are held instead of C.

    Args:
        logits: (C, H, W), any float type; computed in float32.
        size: (height, width) of the result.
        align_corners: of the resize.
        max_elements: resized logits with at most so many elements are made at once.
        prepare: change of some planes (c, H, W), each on its own, before the resize.

    Returns:
        (height, width) int64; the lowest class wins a tie.
    """

    def planes(part: Tensor) -> Tensor:
        part = (prepare(part) if prepare else part).float()
        if part.shape[1:] != tuple(size):
            part = F.interpolate(
                part[None], size, mode='bilinear', align_corners=align_corners
            )[0]
        return part

    pixels = max(logits[0].numel(), size[0] * size[1])
    ready = prepare is None and logits.shape[1:] == tuple(size)
    if ready or len(logits) * pixels <= max_elements:
        return planes(logits).argmax(0)
    best = planes(logits[:1])[0]
    dtype = torch.uint8 if len(logits) <= 256 else torch.int32
    labels = torch.zeros(size, dtype=dtype, device=logits.device)
    for index in range(1, len(logits)):
        plane = planes(logits[index : index + 1])[0]
        # a later index is the larger one; masked_fill_ takes 15 times as long
        torch.maximum(labels, (plane > best).to(dtype).mul_(index), out=labels)
        torch.maximum(best, plane, out=best)
    return labels.long()
