"""Metrics. Host classes load on first use."""

from .._lazy import host_getattr
from .albedo_metric import AlbedoMetric
from .depth_metric import DepthMetric
from .matting_metric import MattingMetric
from .normal_metric import NormalMetric
from .pointmap_metric import PointmapMetric
from .seg_iou import Sapiens2IoUMetric

# class -> (module, host)
HOST_CLASSES: dict[str, tuple[str, str]] = {
    'KeypointOKSMetric': ('sapiens2_mm.evaluation.keypoint_oks', 'pycocotools'),
    'Sapiens2CocoMetric': ('sapiens2_mm.evaluation.coco_metric', 'mmpose'),
    'Sapiens2CocoWholeBodyMetric': ('sapiens2_mm.evaluation.coco_metric', 'mmpose'),
}
__getattr__ = host_getattr(__name__, HOST_CLASSES)

__all__ = [
    'AlbedoMetric',
    'DepthMetric',
    'MattingMetric',
    'NormalMetric',
    'PointmapMetric',
    'Sapiens2IoUMetric',
]
