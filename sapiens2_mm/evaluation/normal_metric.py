"""Angular errors of surface normals."""

from collections.abc import Sequence

from torch import Tensor

from sapiens2_mm.registry import METRICS

from .dense_metric import DenseMetric
from .functional import Sums, angle_sums, angular_error, histogram_median


def threshold_name(degrees: float) -> str:
    """Name of the share below an angle, as the reference writes it."""
    return f'within_{float(degrees)}_deg'.replace('.', '_')


@METRICS.register_module()
class NormalMetric(DenseMetric):
    """Mean, median and RMS angle in degrees; percentage below some angles.

    Pooled over all valid pixels of the set. Predictions are compared at the size of
    the original image with the letterbox undone; the reference stretches the padded
    prediction over the annotation, which is right for 3:4 images only.

    Args:
        thresholds: degrees; strictly below counts.
        bin_width: of the histogram that the median comes from, degrees. The median is
            the center of a bin, so it is exact to half of this.
        kwargs: see ``DenseMetric``.

    Source: Sapiens2 official repository, evaluator of the normal task.
    """

    default_prefix = 'normal'
    fields = ('pred_normal', 'gt_normal', 'gt_mask')

    def __init__(
        self,
        thresholds: Sequence[float] = (5, 11.25, 22.5, 30),
        bin_width: float = 0.5,
        **kwargs,
    ) -> None:
        super().__init__(**kwargs)
        self.thresholds = tuple(thresholds)
        self.bin_width = bin_width

    def measure(self, pred: Tensor, target: Tensor, mask: Tensor) -> Sums:
        angles = angular_error(pred, target, mask)
        sums = angle_sums(angles, self.thresholds, self.bin_width)
        return dict(count=sums['angle_count'], **sums)

    def summarize(self, totals: Sums) -> dict[str, float]:
        count = totals['angle_count']
        return dict(
            normal_mae=totals['angle_sum'] / count,
            normal_median_deg=histogram_median(
                totals['angle_histogram'], self.bin_width
            ),
            normal_rmse=(totals['angle_square_sum'] / count).sqrt(),
            **{
                threshold_name(degrees): 100 * below / count
                for degrees, below in zip(
                    self.thresholds, totals['angle_below'], strict=True
                )
            },
        )
