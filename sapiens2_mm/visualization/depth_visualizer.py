"""Pictures of depth, metric and relative."""

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import FuncNorm, Normalize
from matplotlib.figure import Figure

from sapiens2_mm.registry import VISUALIZERS
from sapiens2_mm.structures import DenseDataSample

from .dense_visualizer import DenseVisualizer, foreground, get_map, on_background

# meters; beyond these bounds inverse depth tells nothing
NEAREST, FARTHEST = 0.1, 250.0


def depth_bounds(depths: list[np.ndarray], mask: np.ndarray) -> tuple[float, float]:
    """Common color bounds of several maps: the 1st and 99th percentile in the mask.

    Args:
        depths: (H, W) each.
        mask: (H, W) bool.

    Returns:
        Lower and upper bound, the upper one larger; (0, 1) if nothing is in the mask.
    """
    values = np.concatenate([depth[mask] for depth in depths])
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, 1.0
    low, high = (float(v) for v in np.percentile(values, (1, 99)))
    return low, max(high, low + 1e-3)


def inverse_depth_norm(low: float, high: float) -> FuncNorm:
    """Depth to [0, 1], linear in inverse depth: ``low`` at 0, ``high`` at 1."""
    low, high = (float(v) for v in np.clip((low, high), NEAREST, FARTHEST))
    low = min(low, FARTHEST / 1.01)
    high = max(high, low * 1.01)  # a bar needs some length

    def negative_inverse(depth: np.ndarray) -> np.ndarray:
        return -1 / np.clip(depth, NEAREST, FARTHEST)

    def back(value: np.ndarray) -> np.ndarray:
        return -1 / np.clip(value, -1 / NEAREST, -1 / FARTHEST)

    return FuncNorm((negative_inverse, back), vmin=low, vmax=high)


def color_bar(height: int, mappable: ScalarMappable, label: str) -> np.ndarray:
    """A labeled color bar.

    Args:
        height: pixels.
        mappable: norm and color map.
        label: with the unit.

    Returns:
        (height, width, 3) uint8 RGB on white.
    """
    dpi = max(100, height // 5)  # larger letters on larger pictures
    width = max(90, height // 5)
    figure = Figure(figsize=(width / dpi, height / dpi), dpi=dpi)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.08, 0.05, 0.2, 0.9))
    bar = figure.colorbar(mappable, cax=axes, label=label)
    bar.set_ticks(np.linspace(mappable.norm.vmin, mappable.norm.vmax, 6))
    bar.ax.minorticks_off()
    bar.ax.yaxis.set_major_formatter('{x:.2f}')
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


@VISUALIZERS.register_module()
class DepthVisualizer(DenseVisualizer):
    """Relative depth, near is bright, on gray with a color bar.

    Annotations are in meters at test time, predictions have no unit, so each map has
    its own bounds.

    Source: Sapiens, demo of the depth task.
    """

    def panels(
        self, image: np.ndarray, data_sample: DenseDataSample, kinds: list[str]
    ) -> list[np.ndarray]:
        mask = foreground(data_sample, image.shape[:2])
        parts = []
        for kind in kinds:
            depth = get_map(data_sample, f'{kind}_depth')
            if depth is None:
                continue
            norm = Normalize(*depth_bounds([depth[..., 0]], mask))
            mappable = ScalarMappable(norm, colormaps['inferno_r'])
            colors = mappable.to_rgba(depth[..., 0], bytes=True)[..., :3]
            parts.append(on_background(colors, mask))
            label = 'relative depth' if kind == 'pred' else 'Z [m]'
            parts.append(color_bar(len(image), mappable, label))
        return parts


@VISUALIZERS.register_module()
class PointmapVisualizer(DenseVisualizer):
    """Z of the points in meters, as turbo colors of the inverse, on gray.

    Annotation and prediction share their bounds and one color bar; near is red.

    Source: Sapiens2 official repository, colors of the pointmap task.
    """

    def panels(
        self, image: np.ndarray, data_sample: DenseDataSample, kinds: list[str]
    ) -> list[np.ndarray]:
        mask = foreground(data_sample, image.shape[:2])
        points = [get_map(data_sample, f'{kind}_pointmap') for kind in kinds]
        depths = [xyz[..., 2] for xyz in points if xyz is not None]
        if not depths:
            return []
        norm = inverse_depth_norm(*depth_bounds(depths, mask))
        mappable = ScalarMappable(norm, colormaps['turbo_r'])
        parts = [
            on_background(mappable.to_rgba(depth, bytes=True)[..., :3], mask)
            for depth in depths
        ]
        return [*parts, color_bar(len(image), mappable, 'Z [m]')]
