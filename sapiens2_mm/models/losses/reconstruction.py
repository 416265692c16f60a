"""Masked reconstruction of normalized patches."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sapiens2_mm.registry import MODELS


def patchify(images: Tensor, patch_size: int) -> Tensor:
    """(B, C, H, W) to (B, N, C * patch_size**2), patches row by row."""
    return F.pixel_unshuffle(images, patch_size).flatten(2).transpose(1, 2)


def unpatchify(patches: Tensor, grid: tuple[int, int], patch_size: int) -> Tensor:
    """Inverse of :func:`patchify` for a grid of (rows, columns)."""
    return F.pixel_shuffle(patches.transpose(1, 2).unflatten(2, grid), patch_size)


def patch_statistics(patches: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each patch over all its values, (B, N, 1) each.

    The variance is the unbiased one; 1e-6 is added under the root.
    """
    var, mean = torch.var_mean(patches, dim=-1, keepdim=True)
    return mean, (var + 1e-6).sqrt()


def masked_patch_mse(pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Squared error, averaged over the values of a patch, the masked patches of an
    image, and the images.

    Args:
        pred: (B, N, P).
        target: (B, N, P).
        mask: (B, N) bool, True where a patch was masked; at least one per image.

    Returns:
        Scalar float32.
    """
    error = (pred.float() - target.float()).square().mean(-1)  # (B, N)
    return ((error * mask).sum(1) / mask.sum(1)).mean()


@MODELS.register_module()
class PatchReconstructionLoss(nn.Module):
    """``masked_patch_mse`` against patches with mean 0 and standard deviation 1.

    Args:
        target_scale: side of the target over the side of the view, at most 1.
            The 4K model reconstructs at 2K: 0.5. The view is shrunk by antialiased
            bicubic.
        loss_weight: factor on the result.

    Raises:
        ValueError: if ``target_scale`` is not in (0, 1].

    Source: Sapiens2 (arXiv 2604.21681) section 3.2 and A.1.1; per-patch normalization
        after MAE (arXiv 2111.06377). The error is the mean square, as its text says,
        not the unsquared norm of its equation.
    """

    def __init__(self, target_scale: float = 1.0, loss_weight: float = 1.0) -> None:
        super().__init__()
        if not 0 < target_scale <= 1:
            name = type(self).__name__
            raise ValueError(f'{name}: target_scale {target_scale} is not in (0, 1]')
        self.target_scale = target_scale
        self.loss_weight = loss_weight

    def resize(self, views: Tensor) -> Tensor:
        """(B, 3, H, W) views to float32 at the size of the target."""
        views = views.float()
        if self.target_scale == 1:
            return views
        size = [round(side * self.target_scale) for side in views.shape[2:]]
        return F.interpolate(views, size, mode='bicubic', antialias=True)

    def raw_patches(self, views: Tensor, grid: tuple[int, int]) -> Tensor:
        """(B, 3, H, W) views to raw (B, N, P) patches of the target."""
        views = self.resize(views)
        size, side = tuple(views.shape[2:]), views.shape[2] // grid[0]
        if size != (grid[0] * side, grid[1] * side):
            raise ValueError(f'change target_scale: {grid=} does not divide {size=}')
        return patchify(views, side)

    def forward(
        self, pred: Tensor, views: Tensor, mask: Tensor, grid: tuple[int, int]
    ) -> Tensor:
        """Weighted loss.

        Args:
            pred: (B, N, P).
            views: (B, 3, H, W) normalized views that the student saw parts of.
            mask: (B, N) bool, True where masked.
            grid: (rows, columns) of the N tokens.

        Raises:
            ValueError: if the target does not divide into the grid, or has another P.
        """
        with torch.autocast(pred.device.type, enabled=False), torch.no_grad():
            patches = self.raw_patches(views, grid)
            mean, std = patch_statistics(patches)
            target = (patches - mean) / std
        if pred.shape != target.shape:
            raise ValueError(
                f'PatchReconstructionLoss: the target is {tuple(target.shape)}, the '
                f'prediction {tuple(pred.shape)}; set out_channels of the decoder'
            )
        with torch.autocast(pred.device.type, enabled=False):
            return self.loss_weight * masked_patch_mse(pred, target, mask)
