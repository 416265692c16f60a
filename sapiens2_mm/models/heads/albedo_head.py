"""Head that predicts albedo."""

from collections.abc import Sequence

from torch import Tensor, nn

from sapiens2_mm.registry import MODELS
from sapiens2_mm.structures import DenseDataSample

from .dense_head import (
    ChannelRMSNorm,
    DenseHead,
    apply_losses,
    crop_padding,
    outside_to_zero,
    resize_map,
    stack_targets,
)


@MODELS.register_module()
class AlbedoHead(DenseHead):
    """Surface colour without light, RGB in [0, 1], gamma as in the image file.

    The decoder uses RMSNorm over the channels of each pixel, so unlike its siblings it
    keeps the absolute brightness of its input. ``predict`` clamps to [0, 1].

    Args:
        kwargs: see ``DenseHead``.

    Source: Sapiens2 official repository, ``AlbedoHead``.
    """

    def __init__(self, **kwargs) -> None:
        super().__init__(norm_layer=ChannelRMSNorm, **kwargs)
        self.conv_albedo = nn.Conv2d(self.decoded_channels, 3, 1)

    def forward(self, feats: Sequence[Tensor]) -> Tensor:
        """(B, 3, H, W), not clamped."""
        return self.conv_albedo(self.decode(feats))

    def loss(
        self, feats: Sequence[Tensor], data_samples: list[DenseDataSample]
    ) -> dict[str, Tensor]:
        pred = self(feats)
        target = stack_targets(data_samples, 'gt_albedo', pred.device)
        mask = stack_targets(data_samples, 'gt_mask', pred.device)
        pred = resize_map(pred.float(), target.shape[-2:])
        return apply_losses(self.loss_decode, pred, target, mask)

    def predict(
        self, feats: Sequence[Tensor], data_samples: list[DenseDataSample]
    ) -> list[DenseDataSample]:
        albedos = self(feats).float().clamp(0, 1)
        for albedo, sample in zip(albedos, data_samples, strict=True):
            albedo = resize_map(crop_padding(albedo, sample), sample.ori_shape)[0]
            sample.pred_albedo = outside_to_zero(albedo, sample)
        return data_samples
