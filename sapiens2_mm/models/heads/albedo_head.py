"""Head that predicts albedo."""

from torch import Tensor

from sapiens2_mm.registry import MODELS

from ..layers import ChannelRMSNorm
from .dense_head import DenseHead


@MODELS.register_module(name=['AlbedoHead', 'ProbeAlbedoHead'])
class AlbedoHead(DenseHead):
    """Surface color without light, RGB in [0, 1], gamma as in the image file.

    The decoder uses RMSNorm over the channels of each pixel, so unlike its siblings it
    keeps the absolute brightness of its input. ``predict`` clamps to [0, 1].

    Source: Sapiens2 official repository, ``AlbedoHead``.
    """

    field = 'albedo'
    channels = 3
    norm_layer = ChannelRMSNorm

    def activation(self, values: Tensor) -> Tensor:
        return values.clamp(0, 1)
