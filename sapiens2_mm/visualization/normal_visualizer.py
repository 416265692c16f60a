"""Pictures of surface normals."""

import numpy as np

from sapiens2_mm.registry import VISUALIZERS
from sapiens2_mm.structures import DenseDataSample

from .dense_visualizer import DenseVisualizer, foreground, get_map, on_background


def normal_colors(normals: np.ndarray) -> np.ndarray:
    """Colors of normals: red is x (right), green y (down), blue z (forward).

    Args:
        normals: (H, W, 3) unit vectors.

    Returns:
        (H, W, 3) uint8 RGB, ``(n + 1) / 2``. A surface facing the camera has little
        blue.
    """
    return ((np.clip(normals, -1, 1) + 1) * 127.5).round().astype(np.uint8)


@VISUALIZERS.register_module()
class NormalVisualizer(DenseVisualizer):
    """Normals as ``normal_colors`` on black.

    Source: Sapiens2 official repository, colors of the normal task.
    """

    def panels(
        self, image: np.ndarray, data_sample: DenseDataSample, kinds: list[str]
    ) -> list[np.ndarray]:
        mask = foreground(data_sample, image.shape[:2])
        maps = [get_map(data_sample, f'{kind}_normal') for kind in kinds]
        return [
            on_background(normal_colors(normals), mask, background=0)
            for normals in maps
            if normals is not None
        ]
