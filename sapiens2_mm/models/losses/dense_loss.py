"""What the losses of normals, pointmaps, albedo, mattes and depth share."""

import torch
from torch import Tensor, nn


def masked_target(target: Tensor, mask: Tensor) -> Tensor:
    """``target`` with zeros where ``mask`` is False, whatever stood there (NaN too)."""
    return torch.where(mask, target, torch.zeros_like(target))


def finite_target(target: Tensor, mask: Tensor) -> Tensor:
    """``target`` with zeros for values outside ``mask`` that are not finite."""
    return torch.where(mask | target.isfinite(), target, torch.zeros_like(target))


def mean_over_pixels(values: Tensor, mask: Tensor) -> Tensor:
    """Sum over channels and valid pixels, divided by the number of valid pixels.

    Args:
        values: (B, C, H, W).
        mask: (B, 1, H, W) bool.

    Returns:
        Scalar; 0 with a graph if no pixel is valid. Note the divisor: pixels, not
        elements, so the value is C times a channel mean.
    """
    total = torch.where(mask, values, torch.zeros_like(values)).sum()
    return total / mask.sum().clamp(min=1)


def mean_over_elements(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over all elements of (B, C, H, W), with 0 where ``mask`` is False."""
    return torch.where(mask, values, torch.zeros_like(values)).mean()


class DenseLoss(nn.Module):
    """Base class of the dense losses: float32, weight, upper bound.

    A subclass defines ``compute`` with the arguments of ``forward``. Floating-point
    tensors arrive there as float32 and autocast is off. A result that is not finite
    stays so, for ``NonFiniteLossHook`` to see.

    Args:
        loss_weight: factor of the loss.
        max_value: upper bound of the weighted loss, above which it has no gradient;
            None for no bound.
        loss_name: key in the log. Losses of one name are added up.

    Raises:
        ValueError: if ``loss_name`` lacks the word "loss"; mmengine would log such a
            loss without training on it.
    """

    default_name = 'loss'

    def __init__(
        self,
        loss_weight: float = 1.0,
        max_value: float | None = None,
        loss_name: str | None = None,
    ) -> None:
        super().__init__()
        self.loss_weight = loss_weight
        self.max_value = max_value
        self.loss_name = self.default_name if loss_name is None else loss_name
        if 'loss' not in self.loss_name:
            raise ValueError(
                f'{type(self).__name__}: loss_name must contain "loss", or the total '
                f'leaves it out; got {self.loss_name!r}'
            )

    def compute(self, *args: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, *args: Tensor) -> Tensor:
        """Weighted loss, a float32 scalar. Arguments as in ``compute``."""
        with torch.autocast(args[0].device.type, enabled=False):
            args = [x.float() if x.is_floating_point() else x for x in args]
            loss = self.compute(*args) * self.loss_weight
            if self.max_value is not None:  # an infinite loss is no large one
                bounded = loss.clamp(max=self.max_value)
                loss = torch.where(loss.isfinite(), bounded, loss)
        return loss
