"""Maps and cameras to call dense losses with."""

import torch

from sapiens2_mm.models.losses import IntrinsicsLoss, PointmapNormalLoss


def some_maps(channels=3, size=(64, 48)):
    """Prediction with a graph, target and mask of two samples."""
    generator = torch.Generator().manual_seed(0)
    pred = 0.8 * torch.rand(2, channels, *size, generator=generator) + 0.1
    target = 0.8 * torch.rand(2, channels, *size, generator=generator) + 0.1
    mask = torch.rand(2, 1, *size, generator=generator) > 0.3
    return pred.requires_grad_(), target, mask


def arguments(loss, pred, target, mask):
    """What ``loss`` is called with: some also take a camera and its scale."""
    if isinstance(loss, (IntrinsicsLoss, PointmapNormalLoss)):
        camera = torch.tensor([[50.0, 0, 24], [0, 50, 32], [0, 0, 1]]).repeat(2, 1, 1)
        return pred, target, mask, camera, torch.full((2, 1), 1.5)
    return pred, target, mask
