"""Linear probes of all tasks on cached features, several learning rates at once."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .probe_data import ProbeData
from .probe_tasks import TASKS

RATES = (2e-3, 1e-2, 5e-2)


class LinearProbes(nn.Module):
    """A norm, then one linear map per learning rate and task, on each patch.

    The norm subtracts the mean and divides by the standard deviation of each channel
    over ``features``, so that the scale of an encoder's output does not count.

    Args:
        features: (N, h, w, C) that the probes are trained on.
        num_rates: R.
    """

    def __init__(self, features: Tensor, num_rates: int) -> None:
        super().__init__()
        self.register_buffer('mean', features.mean((0, 1, 2)))
        self.register_buffer('std', features.std((0, 1, 2), correction=0) + 1e-6)
        outputs = sum(task.channels for task in TASKS.values())
        self.weights = nn.ParameterList(
            torch.zeros(outputs, features.shape[3]) for _ in range(num_rates)
        )
        self.biases = nn.ParameterList(torch.zeros(outputs) for _ in range(num_rates))

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """(B, h, w, C) to (R * B, channels, h, w) per task, rate by rate."""
        x = (features - self.mean) / self.std
        pairs = zip(self.weights, self.biases, strict=True)
        maps = torch.cat([F.linear(x, *pair) for pair in pairs]).permute(0, 3, 1, 2)
        sizes = [task.channels for task in TASKS.values()]
        return dict(zip(TASKS, maps.split(sizes, dim=1), strict=True))


def fit_probes(
    features: Tensor,
    data: ProbeData,
    rates: Sequence[float] = RATES,
    iters: int = 200,
    batch_size: int = 16,
    seed: int = 0,
) -> LinearProbes:
    """Train the probes of all tasks and learning rates together, which share nothing.

    AdamW without weight decay, cosine to 0; maps at a quarter of the image's size.

    Args:
        features: (N, h, w, C) of the images of ``data``.
        data: N images.
        rates: R learning rates.
        iters: steps.
        batch_size: images of a step, at most N.
        seed: of the order of the images.
    """
    height, width = data.images.shape[-2:]
    data = data.at_size((height // 4, width // 4))
    probes = LinearProbes(features, len(rates))
    groups = [
        dict(params=[probes.weights[i], probes.biases[i]], lr=rate)
        for i, rate in enumerate(rates)
    ]
    # gradients of heatmaps are as small as the usual eps
    optimizer = torch.optim.AdamW(groups, weight_decay=0.0, eps=1e-15)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, iters)
    generator = torch.Generator().manual_seed(seed)
    order = torch.empty(0, dtype=torch.long)
    batch_size = min(batch_size, len(data))
    for _ in range(iters):
        if len(order) < batch_size:
            order = torch.randperm(len(data), generator=generator)
        index, order = order[:batch_size], order[batch_size:]
        targets = data[index.repeat(len(rates))]
        preds = probes(features[index])
        # each rate has a share of 1 / R of a mean over R * B images; Adam ignores it
        loss = sum(task.loss(preds[name], targets) for name, task in TASKS.items())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return probes


@torch.no_grad()
def measure_probes(
    probes: LinearProbes,
    features: Tensor,
    data: ProbeData,
    chosen: dict[str, int],
    batch_size: int = 64,
) -> dict[str, Tensor]:
    """Sums per image, (N, ...), of every task, with its ``chosen`` learning rate."""
    found: dict[str, list[Tensor]] = {name: [] for name in TASKS}
    for index in torch.arange(len(data)).split(batch_size):
        targets, preds = data[index], probes(features[index])
        for name, task in TASKS.items():
            pred = preds[name].unflatten(0, (-1, len(index)))[chosen[name]]
            found[name].append(task.measure(pred, targets))
    return {name: torch.cat(sums) for name, sums in found.items()}


def probe(
    train: tuple[Tensor, ProbeData],
    test: tuple[Tensor, ProbeData],
    label_fraction: float,
    seed: int,
    iters: int = 200,
    batch_size: int = 16,
    rates: Sequence[float] = RATES,
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """Measure an encoder by probes on a part of the labels.

    Of the labeled train images, drawn by ``seed``, a fifth is held out to choose the
    learning rate of each task; the test images play no part in it.

    Args:
        train: features (N, h, w, C) and annotations of the train images.
        test: the same of the test images.
        label_fraction: share of the train images whose labels are used.
        seed: of the draw and of the order of training.
        iters: steps of training.
        batch_size: images of a step.
        rates: learning rates to choose from.

    Returns:
        Task -> sums of each test image; task -> chosen learning rate.
    """
    features, data = train
    generator = torch.Generator().manual_seed(seed)
    labeled = torch.randperm(len(data), generator=generator)
    labeled = labeled[: max(2, round(label_fraction * len(data)))]
    num_held = max(1, len(labeled) // 5)
    held, fitted = labeled[:num_held], labeled[num_held:]
    probes = fit_probes(features[fitted], data[fitted], rates, iters, batch_size, seed)
    height, width = data.images.shape[-2:]
    small = data[held].at_size((height // 4, width // 4))
    metrics = []
    for index in range(len(rates)):
        sums = measure_probes(
            probes, features[held], small, dict.fromkeys(TASKS, index)
        )
        metrics.append({n: TASKS[n].metric(x.sum(0)) for n, x in sums.items()})
    chosen = {}
    for name, task in TASKS.items():
        scores = [metric[name] for metric in metrics]
        best = max(scores) if task.larger_is_better else min(scores)
        chosen[name] = scores.index(best)
    sums = measure_probes(probes, *test, chosen)
    return sums, {name: rates[index] for name, index in chosen.items()}
