"""Pictures of albedo."""

import numpy as np

from sapiens2_mm.registry import VISUALIZERS
from sapiens2_mm.structures import DenseDataSample

from .dense_visualizer import DenseVisualizer, foreground, get_map, on_background


def to_uint8(values: np.ndarray) -> np.ndarray:
    """[0, 1] to 0..255, clipped and rounded."""
    return (values.clip(0, 1) * 255).round().astype(np.uint8)


@VISUALIZERS.register_module()
class AlbedoVisualizer(DenseVisualizer):
    """Albedo on gray.

    Source: Sapiens2 official repository, demo of the albedo task.
    """

    def panels(
        self, image: np.ndarray, data_sample: DenseDataSample, kinds: list[str]
    ) -> list[np.ndarray]:
        mask = foreground(data_sample, image.shape[:2])
        maps = [get_map(data_sample, f'{kind}_albedo') for kind in kinds]
        return [
            on_background(to_uint8(albedo), mask)
            for albedo in maps
            if albedo is not None
        ]
