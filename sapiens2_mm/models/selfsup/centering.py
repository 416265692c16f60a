"""Teacher logits to target distributions that do not collapse."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from sapiens2_mm.registry import MODELS


class Centering(nn.Module):
    """Base of the two ways.

    ``all_reduce(tensor, op)`` with op ``'sum'`` or ``'max'`` combines a tensor over the
    processes of a run; the default is for one process. Whoever runs several hands it
    in by assignment.
    """

    def __init__(self) -> None:
        super().__init__()
        self.all_reduce: Callable[[Tensor, str], Tensor] = _one_process

    def forward(self, logits: Tensor, temperature: float) -> Tensor:
        """(V, B, K) raw teacher logits to (V, B, K) float32 probabilities."""
        raise NotImplementedError

    def update(self) -> None:
        """Called once after each optimizer step."""


def _one_process(x: Tensor, op: str) -> Tensor:
    return x


@MODELS.register_module(name=['EMACentering', 'EMACentring'])
class EMACentering(Centering):
    """Subtract a running mean of the teacher's logits before the softmax.

    ``c = momentum * c + (1 - momentum) * mean(logits)``, starting at 0. ``forward``
    uses the center as it is and collects the logits; ``update`` moves the center, once
    per optimizer step, by the mean over all views, samples, accumulated batches and
    processes since the last one.

    Args:
        num_prototypes: K.
        momentum: weight of the old center.

    Raises:
        ValueError: if ``momentum`` is not in [0, 1].

    Source: DINO (arXiv 2104.14294); momentum from Sapiens2 (arXiv 2604.21681) A.1.1.
    """

    def __init__(self, num_prototypes: int, momentum: float = 0.9) -> None:
        super().__init__()
        if not 0 <= momentum <= 1:
            raise ValueError(f'EMACentering: momentum {momentum} is not in [0, 1]')
        self.momentum = momentum
        self.register_buffer('center', torch.zeros(num_prototypes))
        # Sum of the logits since the last update, then their number.
        self.register_buffer(
            'pending', torch.zeros(num_prototypes + 1), persistent=False
        )

    @torch.no_grad()
    def forward(self, logits: Tensor, temperature: float) -> Tensor:
        logits = logits.float()
        if self.training:
            self.pending[:-1] += logits.sum((0, 1))
            self.pending[-1] += logits.shape[0] * logits.shape[1]
        return torch.softmax((logits - self.center) / temperature, dim=-1)

    @torch.no_grad()
    def update(self) -> None:
        pending = self.all_reduce(self.pending, 'sum')
        mean = pending[:-1] / pending[-1]
        moved = (self.center * self.momentum).add_(mean, alpha=1 - self.momentum)
        # nothing is pending after an iteration that NonFiniteLossHook skipped
        self.center.copy_(torch.where(pending[-1] > 0, moved, self.center))
        self.pending.zero_()


@MODELS.register_module(name=['SinkhornCentering', 'SinkhornCentring'])
class SinkhornCentering(Centering):
    """Make all prototypes equally used within the batch, without a running state.

    All views and samples, of all processes, are balanced together, as logarithms:
    probabilities of logits far apart would round to 0, and a sample lose all of its.

    Args:
        num_prototypes: K.
        num_iters: alternations of the column and row normalization.

    Source: SwAV (arXiv 2006.09882) and DINOv2 (arXiv 2304.07193).
    """

    def __init__(self, num_prototypes: int, num_iters: int = 3) -> None:
        super().__init__()
        self.num_prototypes = num_prototypes
        self.num_iters = num_iters

    @torch.no_grad()
    def forward(self, logits: Tensor, temperature: float) -> Tensor:
        x = logits.float().flatten(0, 1) / temperature  # (V*B, K)
        for _ in range(self.num_iters):
            x = torch.log_softmax(x - self._log_use(x), dim=1)
        return x.exp().unflatten(0, logits.shape[:2])

    def _log_use(self, x: Tensor) -> Tensor:
        """(N, K) to (K,): logarithm of the sum of exp(x) over all processes' N."""
        largest = self.all_reduce(x.amax(0), 'max')
        return largest + self.all_reduce((x - largest).exp().sum(0), 'sum').log()
