"""Head that predicts a 3D point per pixel and the scale of the camera."""

from collections.abc import Sequence
from math import ceil

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sapiens2_mm.registry import MODELS
from sapiens2_mm.structures import DenseDataSample

from ..layers import make_conv_layers
from .dense_head import (
    DenseHead,
    add_losses,
    apply_losses,
    build_losses,
    crop_padding,
    outside_to_zero,
    resize_map,
    stack_targets,
)


@MODELS.register_module(name=['PointmapHead', 'ProbePointmapHead'])
class PointmapHead(DenseHead):
    """Points in canonical space and the scale that makes meters of them.

    Canonical points are what a camera of the canonical focal length would have seen:
    ``canonical = scale * metric`` with ``scale = canonical focal length / fx`` of the
    network input. The head predicts both, so ``metric = prediction / scale``.

    The scale branch ends in linear layers over a flattened map, so it is tied to one
    feature size, and with it to one input size. A probe (no ``upsample_channels``) has
    one linear layer on the mean of the map instead, for any size.

    Args:
        in_channels: channels of the backbone's last feature map.
        upsample_channels: channels after each upsampling stage; empty for a probe.
        feature_size: (h, w) of the backbone's map: the input size over the patch size.
        scale_conv_out_channels: channels of the 1x1 convs of stride 2.
        scale_hidden_channels: sizes of the hidden linear layers.
        loss_decode: losses called as ``loss(pred, target, mask)`` on canonical points
            divided by the sample's mean depth.
        loss_depth: losses called as ``loss(pred, target, mask)`` on canonical Z.
        loss_geometry: losses called as ``loss(pred, target, mask, intrinsics, scale)``
            on canonical points, with the true (B, 1) scale and the (B, 3, 3)
            intrinsics of the network input.
        loss_scale: losses called as ``loss(pred, target)`` on (B, 1) scales.
        kwargs: see ``DenseHead``.

    Raises:
        ValueError: if ``feature_size`` is too small for the scale branch.

    Source: Sapiens2 official repository, ``PointmapHead``.
    """

    field = 'pointmap'
    channels = 3

    def __init__(
        self,
        in_channels: int,
        upsample_channels: Sequence[int] = (),
        feature_size: tuple[int, int] = (64, 48),
        scale_conv_out_channels: Sequence[int] = (1536, 512, 128),
        scale_hidden_channels: Sequence[int] = (512, 128),
        loss_depth: dict | Sequence[dict] = (),
        loss_geometry: dict | Sequence[dict] = (),
        loss_scale: dict | Sequence[dict] = (),
        **kwargs,
    ) -> None:
        super().__init__(in_channels, upsample_channels, **kwargs)
        self.is_probe = not upsample_channels
        self.feature_size = tuple(feature_size)
        if self.is_probe:
            self.scale = nn.Linear(in_channels, 1)
        else:
            self._build_scale_branch(scale_conv_out_channels, scale_hidden_channels)
        self.loss_depth = build_losses(loss_depth)
        self.loss_geometry = build_losses(loss_geometry)
        self.loss_scale = build_losses(loss_scale)

    def _build_scale_branch(
        self, conv_channels: Sequence[int], hidden_channels: Sequence[int]
    ) -> None:
        stride = 2 ** len(conv_channels)
        height, width = (ceil(side / stride) for side in self.feature_size)
        if height * width < 2:
            raise ValueError(
                f'PointmapHead: the scale branch shrinks feature_size '
                f'{self.feature_size} to a single cell, which instance norm would '
                f'erase; the smallest are ({stride + 1}, 1) and (1, {stride + 1}), an '
                f'input side of {16 * (stride + 1)} pixels at patch size 16'
            )
        self.scale_conv_layers = make_conv_layers(
            self.in_channels, conv_channels, [1] * len(conv_channels), stride=2
        )
        channels = height * width * (self.in_channels, *conv_channels)[-1]
        linears: list[nn.Module] = [nn.Flatten()]
        for out_channels in hidden_channels:
            linears += [nn.Linear(channels, out_channels), nn.SiLU(inplace=True)]
            channels = out_channels
        self.scale_final_layer = nn.Sequential(*linears, nn.Linear(channels, 1))

    def check_feature_size(self, feature_size: tuple[int, int]) -> None:
        super().check_feature_size(feature_size)
        if not self.is_probe and tuple(feature_size) != self.feature_size:
            raise ValueError(
                f'PointmapHead: built for feature_size {self.feature_size}, but the '
                f'backbone makes {tuple(feature_size)}; set decode_head.feature_size='
                f'{tuple(feature_size)}, which needs its own weights for the scale'
            )

    def forward(self, feats: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Canonical points (B, 3, H, W) and scale (B, 1)."""
        x = feats[-1]
        self.check_feature_size(x.shape[-2:])
        if self.is_probe:
            scale = self.scale(x.mean((2, 3)))
        else:
            scale = self.scale_final_layer(self.scale_conv_layers(x))
        return super().forward(feats), scale

    def loss(
        self, feats: Sequence[Tensor], data_samples: list[DenseDataSample]
    ) -> dict[str, Tensor]:
        pred, pred_scale = self(feats)
        target, mask, scale, intrinsics = (
            stack_targets(data_samples, name, pred.device)
            for name in ('gt_pointmap', 'gt_mask', 'gt_scale', 'intrinsics')
        )
        pred = resize_map(pred.float(), target.shape[-2:])
        intrinsics = of_maps(intrinsics, target, data_samples[0])
        target = target * scale[:, :, None, None]
        depth = mean_depth(target, mask)
        return add_losses(
            apply_losses(self.loss_decode, pred / depth, target / depth, mask),
            apply_losses(self.loss_depth, pred[:, 2:], target[:, 2:], mask),
            apply_losses(self.loss_geometry, pred, target, mask, intrinsics, scale),
            apply_losses(self.loss_scale, pred_scale, scale),
        )

    def predict(
        self, feats: Sequence[Tensor], data_samples: list[DenseDataSample]
    ) -> list[DenseDataSample]:
        """Metric points, their Z as ``pred_depth``, and the scale.

        A scale below 1e-6, which only an untrained head predicts, counts as 1e-6.
        """
        points, scales = self._metric(feats)
        for point, scale, sample in zip(points, scales, data_samples, strict=True):
            point = crop_padding(point, sample)
            height, width = point.shape[-2:]
            if sample.ori_shape[0] > height or sample.ori_shape[1] > width:
                point = smooth(point)
            point = outside_to_zero(resize_map(point, sample.ori_shape)[0], sample)
            sample.pred_pointmap = point
            sample.pred_depth = point[2:]
            sample.pred_scale = scale
        return data_samples

    def predict_batch(
        self, feats: Sequence[Tensor], size: tuple[int, int]
    ) -> dict[str, Tensor]:
        points, scales = self._metric(feats)
        points = resize_map(points, size)
        return dict(pointmap=points, depth=points[:, 2:], scale=scales)

    def _metric(self, feats: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        canonical, scales = self(feats)
        scales = scales.float().clamp(min=1e-6)
        return canonical.float() / scales[:, :, None, None], scales


def of_maps(intrinsics: Tensor, maps: Tensor, sample: DenseDataSample) -> Tensor:
    """(B, 3, 3) cameras of the network input, for maps that are smaller than it."""
    sides = tuple(sample.get('img_shape', maps.shape[-2:]))
    if sides == tuple(maps.shape[-2:]):
        return intrinsics
    factors = [new / old for new, old in zip(maps.shape[-2:], sides, strict=True)]
    scale = intrinsics.new_tensor([factors[1], factors[0], 1])[:, None]
    # pixel centers lie at integers, so the picture begins at -0.5
    half = intrinsics.new_tensor([[0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]])
    return (intrinsics + half) * scale - half


def mean_depth(points: Tensor, mask: Tensor) -> Tensor:
    """Mean Z over the valid pixels of each sample; 1 where there are none.

    Args:
        points: (B, 3, H, W).
        mask: (B, 1, H, W) bool.

    Returns:
        (B, 1, 1, 1).
    """
    z = torch.where(mask, points[:, 2:], torch.zeros_like(points[:, 2:]))
    count = mask.sum((1, 2, 3), keepdim=True)
    mean = z.sum((1, 2, 3), keepdim=True) / count.clamp(min=1)
    return torch.where(mean > 0, mean, torch.ones_like(mean))


def smooth(x: Tensor, num_passes: int = 4, sigma: float = 0.8) -> Tensor:
    """Repeated 3x3 Gaussian blur of (B, C, H, W) with replicated borders.

    Enlarging a pointmap without it shows the steps between network pixels.
    """
    taps = torch.exp(-torch.tensor([-1.0, 0.0, 1.0]).square() / (2 * sigma**2))
    kernel = torch.outer(taps, taps) / taps.sum() ** 2
    kernel = kernel.to(x).repeat(x.shape[1], 1, 1, 1)
    for _ in range(num_passes):
        x = F.conv2d(F.pad(x, (1, 1, 1, 1), 'replicate'), kernel, groups=x.shape[1])
    return x
