"""Spread of features over the sphere."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sapiens2_mm.registry import MODELS

_EPS = 1e-8


def koleo(features: Tensor, others: Tensor | None = None, first: int = 0) -> Tensor:
    """Negative mean log distance to the nearest neighbor among unit vectors.

    Args:
        features: (B, C), any length; normalized here.
        others: (M, C) normalized candidates that contain the unit vectors of
            ``features`` from row ``first`` on; by default those themselves.
        first: see ``others``.

    Returns:
        Scalar float32; 0 if there are fewer than two candidates.
    """
    unit = F.normalize(features.float(), dim=-1)
    others = unit if others is None else others
    if len(others) < 2:
        return 0 * unit.sum()
    with torch.no_grad():  # the choice of the neighbor has no gradient
        similarity = unit @ others.T
        similarity.diagonal(first).fill_(-torch.inf)
        nearest = similarity.argmax(1)
    distance = torch.linalg.vector_norm(unit - others[nearest], dim=-1)
    return -torch.log(distance + _EPS).mean()


@MODELS.register_module()
class KoLeoLoss(nn.Module):
    """``koleo`` of every view on its own, never mixing views of an image.

    Neighbors are looked for within the process. ``gather``, if assigned, joins a
    tensor over processes with gradient and tells the row where the own part begins;
    neighbors are then looked for among all samples.

    Args:
        reduction: ``'mean'`` or ``'sum'`` over the views.
        loss_weight: factor on the result.

    Raises:
        ValueError: on another reduction.

    Source: Sapiens2 (arXiv 2604.21681) A.1.1 for the weight; form of DINOv2
        (arXiv 2304.07193). DINOv2 sums over views; which one the paper does is unknown.
    """

    def __init__(self, reduction: str = 'mean', loss_weight: float = 0.04) -> None:
        super().__init__()
        if reduction not in ('mean', 'sum'):
            raise ValueError(
                f"KoLeoLoss: reduction must be 'mean' or 'sum', got {reduction!r}"
            )
        self.reduction = reduction
        self.loss_weight = loss_weight
        self.gather: Callable[[Tensor], tuple[Tensor, int]] | None = None

    def forward(self, features: Tensor) -> Tensor:
        """(V, B, C) features of V views, weighted loss."""
        with torch.autocast(features.device.type, enabled=False):
            losses = []
            for view in features:
                if self.gather is None:
                    losses.append(koleo(view))
                else:
                    unit = F.normalize(view.float(), dim=-1)
                    losses.append(koleo(unit, *self.gather(unit)))
            loss = torch.stack(losses)
            loss = loss.mean() if self.reduction == 'mean' else loss.sum()
            return self.loss_weight * loss
