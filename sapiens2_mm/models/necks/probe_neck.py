"""Light decoder for probing a frozen backbone."""

from collections.abc import Sequence

from mmengine.model import BaseModule
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.init import trunc_normal_

from sapiens2_mm.registry import MODELS


@MODELS.register_module()
class ProbeNeck(BaseModule):
    """1x1 projection, 3x3 convolution with GELU, bilinear enlargement.

    All probes share it; a task's head adds its 1x1 predictor. There is no norm, so
    the scale of the features counts.

    Args:
        in_channels: C of the backbone.
        out_channels: channels of both convolutions.
        scale_factor: side of the result over that of the map of patches.
        init_cfg: mmengine's.

    Source: Sapiens2 (arXiv 2604.21681) section 6.2 for the protocol (frozen encoder,
        light decoder, equal settings); the layers are our choice.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int = 256,
        scale_factor: int = 4,
        init_cfg: dict | None = None,
    ) -> None:
        super().__init__(init_cfg)
        self.scale_factor = scale_factor
        self.project = nn.Conv2d(in_channels, out_channels, 1)
        self.conv = nn.Conv2d(out_channels, out_channels, 3, padding=1)

    def init_weights(self) -> None:
        """Weights: truncated normal, std 0.02; biases 0."""
        for conv in (self.project, self.conv):
            trunc_normal_(conv.weight, std=0.02)
            nn.init.zeros_(conv.bias)
        super().init_weights()

    def forward(self, feats: Sequence[Tensor]) -> tuple[Tensor]:
        """(B, C, h, w), last of ``feats``, to (B, out_channels, s * h, s * w)."""
        x = F.gelu(self.conv(self.project(feats[-1])))
        x = F.interpolate(
            x, scale_factor=self.scale_factor, mode='bilinear', align_corners=False
        )
        return (x,)
