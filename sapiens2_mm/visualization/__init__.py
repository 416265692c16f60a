"""Visualizers. Host classes load on first use."""

from .._lazy import host_getattr
from .albedo_visualizer import AlbedoVisualizer
from .depth_visualizer import DepthVisualizer, PointmapVisualizer
from .label_overlay import overlay_labels
from .matting_visualizer import MattingVisualizer
from .normal_visualizer import NormalVisualizer
from .point_cloud import save_point_cloud

# class -> (module, host)
HOST_CLASSES: dict[str, tuple[str, str]] = {
    'Sapiens2PoseVisualizer': ('sapiens2_mm.visualization.pose_visualizer', 'mmpose'),
    'Sapiens2SegVisualizer': ('sapiens2_mm.visualization.seg_visualizer', 'mmseg'),
}
__getattr__ = host_getattr(__name__, HOST_CLASSES)

__all__ = [
    'AlbedoVisualizer',
    'DepthVisualizer',
    'MattingVisualizer',
    'NormalVisualizer',
    'PointmapVisualizer',
    'overlay_labels',
    'save_point_cloud',
]
