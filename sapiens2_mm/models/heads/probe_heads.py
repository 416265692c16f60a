"""Dense heads without a decoder of their own, to follow ``ProbeNeck``.

Losses, targets and predictions are those of the full heads. The pose and the
segmentation head need no such class: they take empty lists of layers.
"""

from collections.abc import Sequence

from mmengine.model import BaseModule
from torch import Tensor, nn

from sapiens2_mm.registry import MODELS

from .albedo_head import AlbedoHead
from .dense_head import DENSE_INIT, build_losses
from .normal_head import NormalHead
from .pointmap_head import PointmapHead


class _ProbeMixin:
    """The map that comes in is the decoded one.

    Args:
        in_channels: of the map that comes in.
        loss_decode: as in the full head.
    """

    def __init__(
        self, in_channels: int, loss_decode: dict | Sequence[dict] = ()
    ) -> None:
        BaseModule.__init__(self, DENSE_INIT)  # the full heads would build a decoder
        self.in_channels = self.decoded_channels = in_channels
        self.loss_decode = build_losses(loss_decode)

    def check_feature_size(self, feature_size: tuple[int, int]) -> None:
        """Any size will do."""

    def decode(self, feats: Sequence[Tensor]) -> Tensor:
        return feats[-1]


@MODELS.register_module()
class ProbeNormalHead(_ProbeMixin, NormalHead):
    """``NormalHead`` as one 1x1 convolution; arguments as for ``_ProbeMixin``."""

    def __init__(
        self, in_channels: int, loss_decode: dict | Sequence[dict] = ()
    ) -> None:
        super().__init__(in_channels, loss_decode)
        self.conv_normal = nn.Conv2d(in_channels, 3, 1)


@MODELS.register_module()
class ProbeAlbedoHead(_ProbeMixin, AlbedoHead):
    """``AlbedoHead`` as one 1x1 convolution; arguments as for ``_ProbeMixin``."""

    def __init__(
        self, in_channels: int, loss_decode: dict | Sequence[dict] = ()
    ) -> None:
        super().__init__(in_channels, loss_decode)
        self.conv_albedo = nn.Conv2d(in_channels, 3, 1)


@MODELS.register_module()
class ProbePointmapHead(_ProbeMixin, PointmapHead):
    """``PointmapHead`` as one 1x1 convolution and, for the scale, a linear layer on
    the mean of the map.

    Args:
        in_channels: of the map that comes in.
        loss_decode, loss_depth, loss_geometry, loss_scale: as in ``PointmapHead``.
    """

    def __init__(
        self,
        in_channels: int,
        loss_decode: dict | Sequence[dict] = (),
        loss_depth: dict | Sequence[dict] = (),
        loss_geometry: dict | Sequence[dict] = (),
        loss_scale: dict | Sequence[dict] = (),
    ) -> None:
        super().__init__(in_channels, loss_decode)
        self.conv_pointmap = nn.Conv2d(in_channels, 3, 1)
        self.scale = nn.Linear(in_channels, 1)
        self.loss_depth = build_losses(loss_depth)
        self.loss_geometry = build_losses(loss_geometry)
        self.loss_scale = build_losses(loss_scale)

    def forward(self, feats: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Canonical points (B, 3, H, W) and scale (B, 1)."""
        x = feats[-1]
        return self.conv_pointmap(x), self.scale(x.mean((2, 3)))
