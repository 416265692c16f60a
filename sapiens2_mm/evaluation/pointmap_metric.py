"""Distances between predicted and true points."""

from collections.abc import Sequence
from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from sapiens2_mm.registry import METRICS

from .dense_metric import DenseMetric
from .functional import Sums, angle_sums, angular_error, distance_sums, sobel_normals
from .normal_metric import threshold_name


@METRICS.register_module()
class PointmapMetric(DenseMetric):
    """Distance and axis errors, fractions below thresholds, normal angles.

    Pooled over all valid pixels of the set; fractions, not percentages. Normals are
    those of 5x5 Sobel gradients of the two pointmaps.

    Args:
        units: ``'canonical'`` compares in canonical space, as the reference does: the
            predicted scale plays no part, and a distance is one of meters only for a
            camera of the canonical focal length, whatever ``within_05_cm`` says.
            ``'metric'`` compares meters, with the predicted scale applied.
        thresholds: distances; strictly below counts.
        angle_thresholds: degrees; strictly below counts.
        whole_windows: take the angle only where the Sobel window lies wholly in the
            mask. The reference takes it at every valid pixel, so the metrics involve
            whatever is stored outside.
        kwargs: see ``DenseMetric``.

    Source: Sapiens2 official repository, evaluator of the pointmap task.
    """

    default_prefix = 'pointmap'
    fields = ('pred_pointmap', 'gt_pointmap', 'gt_mask', 'pred_scale', 'gt_scale')

    def __init__(
        self,
        units: Literal['canonical', 'metric'] = 'canonical',
        thresholds: Sequence[float] = (0.05, 0.1, 0.2),
        angle_thresholds: Sequence[float] = (5, 11.25, 22.5, 30),
        whole_windows: bool = False,
        **kwargs,
    ) -> None:
        super().__init__(**kwargs)
        if units not in ('canonical', 'metric'):
            raise ValueError(
                f"PointmapMetric: units must be 'canonical' or 'metric', got {units!r}"
            )
        self.units = units
        self.thresholds = tuple(thresholds)
        self.angle_thresholds = tuple(angle_thresholds)
        self.whole_windows = whole_windows

    def measure(
        self,
        pred: Tensor,
        target: Tensor,
        mask: Tensor,
        pred_scale: Tensor,
        gt_scale: Tensor,
    ) -> Sums:
        if self.units == 'canonical':
            pred, target = pred * pred_scale, target * gt_scale
        sums = distance_sums(pred, target, mask, self.thresholds)
        if self.whole_windows:
            invalid = F.max_pool2d((~mask).float(), 5, stride=1, padding=2)
            mask = mask & (invalid == 0)
        angles = angular_error(sobel_normals(pred), sobel_normals(target), mask)
        return sums | angle_sums(angles, self.angle_thresholds, bin_width=0.5)

    def summarize(self, totals: Sums) -> dict[str, float]:
        count = totals['count']
        angle_count = totals['angle_count'].clamp(min=1)
        metrics = dict(
            l2_mean=totals['distance_sum'] / count,
            rmse=(totals['square_sum'] / count).sqrt(),
            normal_mae=totals['angle_sum'] / angle_count,
            normal_rmse=(totals['angle_square_sum'] / angle_count).sqrt(),
        )
        for axis, value in zip('xyz', totals['axis_sum'] / count, strict=True):
            metrics[f'{axis}_mae'] = value
        shares = zip(self.thresholds, totals['below'] / count, strict=True)
        for distance, share in shares:
            metrics[f'within_{round(100 * distance):02d}_cm'] = share
        shares = zip(
            self.angle_thresholds, totals['angle_below'] / angle_count, strict=True
        )
        for degrees, share in shares:
            metrics[threshold_name(degrees)] = share
        return metrics
