"""Head that predicts an alpha matte and the foreground color."""

from collections.abc import Sequence

import torch
from torch import Tensor

from sapiens2_mm.registry import MODELS
from sapiens2_mm.structures import DenseDataSample

from .dense_head import (
    DenseHead,
    apply_losses,
    build_losses,
    resize_map,
    stack_targets,
)


@MODELS.register_module()
class MattingHead(DenseHead):
    """Foreground color, multiplied by alpha, and alpha; all in [0, 1].

    A composite over another background is ``foreground + (1 - alpha) * background``.

    Args:
        loss_decode: losses on alpha, over all pixels.
        loss_foreground: losses on the foreground, where it is known.
        kwargs: see ``DenseHead``.

    Source: Sapiens2 official repository, ``MattingHead``.
    """

    field = 'matting'
    channels = 4

    def __init__(self, loss_foreground: dict | Sequence[dict] = (), **kwargs) -> None:
        super().__init__(**kwargs)
        self.loss_foreground = build_losses(loss_foreground)

    def forward(self, feats: Sequence[Tensor]) -> Tensor:
        """(B, 4, H, W): RGB foreground, alpha."""
        return super().forward(feats).sigmoid()

    def activation(self, values: Tensor) -> Tensor:
        return values.clamp(0, 1)  # resizing may leave it by a rounding error

    def loss(
        self, feats: Sequence[Tensor], data_samples: list[DenseDataSample]
    ) -> dict[str, Tensor]:
        """Names end in ``_pha`` (alpha) and ``_fgr`` (foreground)."""
        pred = self(feats)
        alpha = stack_targets(data_samples, 'gt_alpha', pred.device)
        pred = resize_map(pred.float(), alpha.shape[-2:])
        everywhere = torch.ones_like(alpha, dtype=torch.bool)
        losses = apply_losses(self.loss_decode, pred[:, 3:], alpha, everywhere)
        losses = {f'{name}_pha': value for name, value in losses.items()}
        if len(self.loss_foreground):
            target = stack_targets(data_samples, 'gt_foreground', pred.device)
            mask = stack_targets(data_samples, 'gt_foreground_mask', pred.device)
            terms = apply_losses(self.loss_foreground, pred[:, :3], target, mask)
            losses.update({f'{name}_fgr': value for name, value in terms.items()})
        return losses

    def fields(self, pred: Tensor) -> dict[str, Tensor]:
        foreground, alpha = pred.split([3, 1], dim=-3)
        return dict(foreground=foreground, alpha=alpha)
