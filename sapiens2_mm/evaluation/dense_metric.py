"""What the dense metrics share."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.evaluator import BaseMetric
from torch import Tensor

from .functional import Sums


class DenseMetric(BaseMetric):
    """Adds up sums of samples, so results do not depend on batches or processes.

    A subclass names the fields it compares, measures one sample and turns the totals
    into metrics. A sample without valid pixels adds nothing.

    Args:
        collect_device: see mmengine's ``BaseMetric``.
        prefix: of the metrics' names.

    Raises:
        ValueError: if a sample lacks a field, sizes differ or a prediction is not
            finite; if no sample has a valid pixel.
    """

    fields: tuple[str, ...] = ()

    def __init__(self, collect_device: str = 'cpu', prefix: str | None = None) -> None:
        super().__init__(collect_device=collect_device, prefix=prefix)

    def measure(self, *fields: Tensor) -> Sums:
        """Sums of one sample; arguments are its ``fields``, on the CPU."""
        raise NotImplementedError

    def summarize(self, totals: Sums) -> dict[str, float]:
        """Metrics of the whole set."""
        raise NotImplementedError

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        for sample in data_samples:
            path, name = sample.get('img_path'), type(self).__name__
            missing = [field for field in self.fields if field not in sample]
            if missing:
                raise ValueError(
                    f'{name}: {path} lacks {missing}; load gt_* in the test pipeline'
                )
            values = [sample[field].cpu() for field in self.fields]
            if len({x.shape[1:] for x in values if x.ndim == 3}) > 1:
                raise ValueError(
                    f'{name}: fields of {path} differ in size: '
                    f'{[tuple(x.shape) for x in values]}; use with_maps=False to load'
                )
            for field, value in zip(self.fields, values, strict=True):
                if field.startswith('pred_') and not value.isfinite().all():
                    raise ValueError(f'{name}: {field} of {path} is not finite')
            self.results.append(self.measure(*values))

    def compute_metrics(self, results: list[Sums]) -> dict[str, float]:
        totals = {
            key: torch.stack([sums[key] for sums in results]).sum(0).double()
            for key in results[0]
        }
        if 'count' in totals and not totals['count']:
            name = type(self).__name__
            raise ValueError(
                f'{name}: none of {len(results)} samples has a valid pixel'
            )
        return {key: float(value) for key, value in self.summarize(totals).items()}
