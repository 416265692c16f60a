"""Bootstrap intervals of metrics over test images and seeds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Metric = Callable[[Tensor], float]


@dataclass(frozen=True)
class Estimate:
    """A metric: its mean over seeds and the bounds of its 95 % interval."""

    mean: float
    low: float
    high: float


def estimate(
    metric: Metric,
    runs: Sequence[Tensor],
    minus: Sequence[Tensor] | None = None,
    num_draws: int = 500,
) -> Estimate:
    """Mean over seeds with a bootstrap interval.

    Each draw takes S seeds and N images with replacement; the images are the same for
    all seeds. The bounds are the 2.5th and 97.5th percentile of the draws' means.

    Args:
        metric: sums of any number of images, added up, to the metric.
        runs: sums per image, (N, ...), one for each of S seeds.
        minus: as ``runs``; the estimate is then that of the difference, with the same
            seeds and images drawn for both.
        num_draws: of the bootstrap.
    """
    generator = torch.Generator().manual_seed(0)
    num_seeds, num_images = len(runs), len(runs[0])
    images = torch.randint(num_images, (num_draws, num_images), generator=generator)
    counts = torch.stack([row.bincount(minlength=num_images) for row in images])
    seeds = torch.randint(num_seeds, (num_draws, num_seeds), generator=generator)
    everything = torch.ones(1, num_images, dtype=counts.dtype)
    weights = torch.cat((everything, counts)).double()

    def metrics(parts: Sequence[Tensor]) -> Tensor:
        """(S, 1 + num_draws): of all images, then of each draw."""
        totals = [torch.tensordot(weights, part.double(), 1) for part in parts]
        return torch.tensor([[metric(x) for x in total] for total in totals])

    values = metrics(runs)
    if minus is not None:
        values = values - metrics(minus)
    draws = values[:, 1:].gather(0, seeds.T).mean(0)
    low, high = draws.quantile(draws.new_tensor([0.025, 0.975])).tolist()
    return Estimate(float(values[:, 0].mean()), low, high)
