"""Visualizers. Host classes load on first use."""

from .._lazy import host_getattr

# class -> (module, host)
HOST_CLASSES: dict[str, tuple[str, str]] = {
    'Sapiens2PoseVisualizer': ('sapiens2_mm.visualization.pose_visualizer', 'mmpose'),
}
__getattr__ = host_getattr(__name__, HOST_CLASSES)
