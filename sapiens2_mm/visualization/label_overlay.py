"""Images tinted by the colors of their classes."""

from collections.abc import Sequence

import numpy as np

_IGNORED_COLOR = (255, 255, 255)


def overlay_labels(
    image: np.ndarray,
    labels: np.ndarray,
    palette: Sequence[Sequence[int]],
    alpha: float = 0.6,
    background_id: int | None = 0,
) -> np.ndarray:
    """Tint an image with the colors of its classes.

    Args:
        image: (H, W, 3) uint8 RGB.
        labels: (H, W) integers; values without a color are drawn white.
        palette: RGB colors of the classes.
        alpha: weight of the colors, 0 to 1.
        background_id: class that is left as it is; None tints all.

    Returns:
        (H, W, 3) uint8 RGB.

    Raises:
        ValueError: if the sizes differ.
    """
    if image.shape[:2] != labels.shape:
        raise ValueError(
            f'image {image.shape} and labels {labels.shape} differ in size'
        )
    num_classes = len(palette)
    colors = np.array([*palette, _IGNORED_COLOR], np.float32) * alpha
    keep = np.full(num_classes + 1, 1 - alpha, np.float32)
    if background_id is not None and background_id < num_classes:
        colors[background_id], keep[background_id] = 0, 1
    ids = np.where((labels >= 0) & (labels < num_classes), labels, num_classes)
    return np.rint(image * keep[ids][..., None] + colors[ids]).astype(np.uint8)
