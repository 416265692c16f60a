"""Errors of depth."""

from typing import Literal

import torch
from torch import Tensor

from sapiens2_mm.registry import METRICS

from .dense_metric import DenseMetric
from .functional import Sums, align_depth


@METRICS.register_module()
class DepthMetric(DenseMetric):
    """Absolute relative error, RMSE and the shares within factors 1.25, 1.25^2, 1.25^3.

    Computed per image and averaged over images with valid pixels. The truth is
    ``gt_depth`` in meters; pixels where it is 0 are left out.

    Args:
        alignment: what is fitted to the truth before, per image: ``'scale_shift'`` for
            relative depth, ``'scale'``, or ``'none'`` for metric depth.
        kwargs: see ``DenseMetric``.

    Source: Sapiens (arXiv 2408.12569), depth evaluation; the release has no code for
        it.
    """

    default_prefix = 'depth'
    fields = ('pred_depth', 'gt_depth', 'gt_mask')

    def __init__(
        self,
        alignment: Literal['none', 'scale', 'scale_shift'] = 'scale_shift',
        **kwargs,
    ) -> None:
        super().__init__(**kwargs)
        if alignment not in ('none', 'scale', 'scale_shift'):
            raise ValueError(
                "DepthMetric: alignment must be 'none', 'scale' or 'scale_shift', got "
                f'{alignment!r}'
            )
        self.alignment = alignment

    def measure(self, pred: Tensor, target: Tensor, mask: Tensor) -> Sums:
        mask = mask & (target > 0)
        pred, target = pred[mask].double(), target[mask].double()
        if not len(target):
            return dict(
                count=torch.tensor(0), metrics=torch.zeros(5, dtype=torch.float64)
            )
        if self.alignment != 'none':
            pred = align_depth(pred, target, self.alignment == 'scale_shift')
        pred = pred.clamp(min=1e-6)
        error = pred - target
        ratio = torch.maximum(pred / target, target / pred)
        metrics = [
            (error.abs() / target).mean(),
            error.square().mean().sqrt(),
            *((ratio < 1.25**power).double().mean() for power in (1, 2, 3)),
        ]
        return dict(count=torch.tensor(1), metrics=torch.stack(metrics))

    def summarize(self, totals: Sums) -> dict[str, float]:
        names = ('abs_rel', 'rmse', 'delta1', 'delta2', 'delta3')
        metrics = totals['metrics'] / totals['count']
        return dict(zip(names, metrics, strict=True))
