"""Pictures of albedo."""

import numpy as np

from sapiens2_mm.registry import VISUALIZERS

from .dense_visualizer import DenseVisualizer


def to_uint8(values: np.ndarray) -> np.ndarray:
    """[0, 1] to 0..255, clipped and rounded."""
    return (values.clip(0, 1) * 255).round().astype(np.uint8)


@VISUALIZERS.register_module()
class AlbedoVisualizer(DenseVisualizer):
    """Albedo on gray.

    Source: Sapiens2 official repository, demo of the albedo task.
    """

    field = 'albedo'

    def colors(self, values: np.ndarray) -> np.ndarray:
        return to_uint8(values)
