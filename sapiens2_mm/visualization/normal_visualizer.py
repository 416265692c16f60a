"""Pictures of surface normals."""

import numpy as np

from sapiens2_mm.registry import VISUALIZERS

from .dense_visualizer import DenseVisualizer


def normal_colors(normals: np.ndarray) -> np.ndarray:
    """Colors of normals: red is x (right), green y (down), blue z (forward).

    Args:
        normals: (H, W, 3) unit vectors.

    Returns:
        (H, W, 3) uint8 RGB, ``(n + 1) / 2``. A surface facing the camera has little
        blue.
    """
    values = np.clip(normals, -1, 1)
    values += 1
    values *= 127.5
    return np.rint(values, out=values).astype(np.uint8)


@VISUALIZERS.register_module()
class NormalVisualizer(DenseVisualizer):
    """Normals as ``normal_colors`` on black.

    Source: Sapiens2 official repository, colors of the normal task.
    """

    field = 'normal'
    background = 0

    def colors(self, values: np.ndarray) -> np.ndarray:
        return normal_colors(values)
