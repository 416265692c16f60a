"""Metrics. Host classes load on first use."""

from .._lazy import host_getattr
from .seg_iou import Sapiens2IoUMetric

# class -> (module, host)
HOST_CLASSES: dict[str, tuple[str, str]] = {
    'KeypointOKSMetric': ('sapiens2_mm.evaluation.keypoint_oks', 'pycocotools'),
}
__getattr__ = host_getattr(__name__, HOST_CLASSES)

__all__ = ['Sapiens2IoUMetric']
