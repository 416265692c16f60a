"""Color errors of albedo."""

from torch import Tensor

from sapiens2_mm.registry import METRICS

from .dense_metric import DenseMetric
from .functional import Sums, color_sums, masked_ssim_sums


@METRICS.register_module()
class AlbedoMetric(DenseMetric):
    """MAE, RMSE, PSNR, SSIM and L1 of the gradient, for values in [0, 1].

    Pooled over all valid pixels of the set. ``AlbedoHead`` clamps its predictions; the
    reference evaluates them unclamped, which gives somewhat larger errors, and guesses
    the range (1 or 255) from the first batch.

    Args:
        data_range: largest minus smallest possible value.
        kwargs: see ``DenseMetric``.

    Source: Sapiens2 official repository, evaluator of the albedo task.
    """

    default_prefix = 'albedo'
    fields = ('pred_albedo', 'gt_albedo', 'gt_mask')

    def __init__(self, data_range: float = 1.0, **kwargs) -> None:
        super().__init__(**kwargs)
        self.data_range = data_range

    def measure(self, pred: Tensor, target: Tensor, mask: Tensor) -> Sums:
        return color_sums(pred, target, mask) | masked_ssim_sums(
            pred, target, mask, self.data_range
        )

    def summarize(self, totals: Sums) -> dict[str, float]:
        """PSNR of a perfect prediction is infinite."""
        mean_square = totals['square_sum'] / totals['count']
        return dict(
            mae=totals['absolute_sum'] / totals['count'],
            rmse=mean_square.sqrt(),
            psnr=10 * (self.data_range**2 / mean_square).log10(),
            ssim=totals['ssim_sum'] / totals['ssim_count'].clamp(min=1),
            grad_l1=totals['gradient_sum'] / totals['gradient_count'].clamp(min=1),
        )
