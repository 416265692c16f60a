"""Errors of alpha mattes."""

import torch
from torch import Tensor

from sapiens2_mm.registry import METRICS

from .dense_metric import DenseMetric
from .functional import Sums


@METRICS.register_module()
class MattingMetric(DenseMetric):
    """Mean absolute and mean square error of alpha over all pixels.

    If ``with_foreground``, also the mean absolute error of the foreground color over
    the elements where it is known.

    Args:
        with_foreground: samples carry ``gt_foreground`` and ``gt_foreground_mask``.
        kwargs: see ``DenseMetric``.

    Source: Sapiens2 official repository, matting task.
    """

    default_prefix = 'matting'

    def __init__(self, with_foreground: bool = False, **kwargs) -> None:
        super().__init__(**kwargs)
        self.fields = ('pred_alpha', 'gt_alpha')
        if with_foreground:
            self.fields += ('pred_foreground', 'gt_foreground', 'gt_foreground_mask')

    def measure(self, pred: Tensor, target: Tensor, *foreground: Tensor) -> Sums:
        error = pred.double() - target.double()
        sums = dict(
            count=torch.tensor(error.numel()),
            absolute_sum=error.abs().sum(),
            square_sum=error.square().sum(),
        )
        if foreground:
            pred, target, mask = foreground
            error = (pred.double() - target.double())[:, mask[0]]
            sums['foreground_count'] = torch.tensor(error.numel())
            sums['foreground_sum'] = error.abs().sum()
        return sums

    def summarize(self, totals: Sums) -> dict[str, float]:
        metrics = dict(
            alpha_mae=totals['absolute_sum'] / totals['count'],
            alpha_mse=totals['square_sum'] / totals['count'],
        )
        if 'foreground_sum' in totals:
            count = totals['foreground_count'].clamp(min=1)
            metrics['foreground_mae'] = totals['foreground_sum'] / count
        return metrics
