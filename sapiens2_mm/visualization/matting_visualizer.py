"""Pictures of mattes."""

import numpy as np

from sapiens2_mm.registry import VISUALIZERS
from sapiens2_mm.structures import DenseDataSample

from .albedo_visualizer import to_uint8
from .dense_visualizer import DenseVisualizer, get_map

CHROMA_GREEN = (0, 177, 64)


def composite(
    foreground: np.ndarray, alpha: np.ndarray, background: np.ndarray
) -> np.ndarray:
    """Foreground over another background.

    Args:
        foreground: (H, W, 3) in [0, 1], multiplied by alpha already.
        alpha: (H, W, 1) in [0, 1].
        background: (H, W, 3) or a color (3,), in [0, 1].

    Returns:
        (H, W, 3) in [0, 1].
    """
    return foreground + (1 - alpha) * background


@VISUALIZERS.register_module()
class MattingVisualizer(DenseVisualizer):
    """The matte in gray and the composite over green.

    Source: Sapiens2 official repository, demo of the matting task.
    """

    def panels(
        self, image: np.ndarray, data_sample: DenseDataSample, kinds: list[str]
    ) -> list[np.ndarray]:
        parts = []
        for kind in kinds:
            alpha = get_map(data_sample, f'{kind}_alpha')
            color = get_map(data_sample, f'{kind}_foreground')
            if alpha is not None:
                parts.append(to_uint8(alpha).repeat(3, axis=2))
            if alpha is not None and color is not None:
                green = np.array(CHROMA_GREEN) / 255
                parts.append(to_uint8(composite(color, alpha, green)))
        return parts
