"""Walk over the pixels of a batch of logits in pieces of bounded size.

The losses of segmentation need a few buffers as large as the logits. Working piece
by piece keeps those buffers small, whatever the batch and image size.
"""

from collections.abc import Iterator

from torch import Tensor

# Logits per piece: 16 MiB in float32, large enough to keep a GPU busy.
_MAX_ELEMENTS = 2**22


def pixel_chunks(
    logits: Tensor, max_elements: int = _MAX_ELEMENTS
) -> Iterator[tuple[int, slice]]:
    """Yield (sample index, slice of rows) that together cover (B, C, H, W) logits."""
    batch, channels, height, width = logits.shape
    rows = max(1, max_elements // max(1, channels * width))
    for index in range(batch):
        for start in range(0, height, rows):
            yield index, slice(start, min(start + rows, height))


def check_labels(logits: Tensor, labels: Tensor, ignore_index: int) -> None:
    """Compare shapes, and on the CPU label values, before the arithmetic.

    On an accelerator the values are not read back: the gather there stops by itself.

    Raises:
        ValueError: if shapes do not match or a label is neither a class nor ignored.
    """
    if logits.ndim != 4 or labels.shape != logits.shape[:1] + logits.shape[2:]:
        raise ValueError(
            'segmentation loss: expected logits (B, C, H, W) and labels (B, H, W), '
            f'got {tuple(logits.shape)} and {tuple(labels.shape)}'
        )
    if labels.device.type == 'cpu':
        wrong = (labels != ignore_index) & ((labels < 0) | (labels >= logits.shape[1]))
        if wrong.any():
            raise ValueError(
                f'segmentation loss: expected labels 0 to {logits.shape[1] - 1} or '
                f'{ignore_index} (ignored), got {labels[wrong].unique().tolist()}; '
                'remap the masks or raise num_classes'
            )
