"""Visualizers that compose whole pictures."""

import numpy as np
from mmengine.visualization import Visualizer


class LastPicture(Visualizer):
    """Keeps the picture of ``add_datasample`` without a figure of matplotlib.

    To make the figure takes longer than to compose the picture. Call ``set_image`` to
    draw on a picture with the methods of mmengine.
    """

    _picture: np.ndarray | None = None

    def keep_image(self, picture: np.ndarray) -> None:
        """Let ``get_image`` return this (H, W, 3) uint8 RGB picture."""
        self._picture = picture

    def set_image(self, image: np.ndarray) -> None:
        self._picture = None
        super().set_image(image)

    def get_image(self) -> np.ndarray:
        return super().get_image() if self._picture is None else self._picture
