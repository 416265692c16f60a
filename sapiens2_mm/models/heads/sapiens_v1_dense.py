"""Heads of the first Sapiens for surface normals and relative depth."""

from collections.abc import Sequence

from torch import Tensor, nn

from sapiens2_mm.registry import MODELS

from ..layers import make_deconv_layers
from .dense_head import DenseHead
from .depth_head import DepthHead
from .normal_head import NormalHead

_DECONV_INIT = dict(type='Kaiming', layer='ConvTranspose2d')


class DeconvDenseHead(DenseHead):
    """``DenseHead`` with deconvolutions in place of pixel shuffle.

    Deconvolutions (x2 each), refining 1x1 convolutions, channel dropout, predictor;
    InstanceNorm and SiLU after each convolution.

    Args:
        in_channels: channels of the backbone's last feature map.
        deconv_out_channels: channels after each deconvolution of kernel size 4.
        conv_out_channels: channels after each refining convolution.
        dropout_ratio: share of channels that are 0 before the predictor in training.
        loss_decode: config or configs of the losses on the predicted map.
        init_cfg: that of ``DenseHead``, for deconvolutions too, by default.

    Source: Sapiens official repository, dense heads.
    """

    def __init__(
        self,
        in_channels: int,
        deconv_out_channels: Sequence[int] = (768, 768, 768),
        conv_out_channels: Sequence[int] = (768, 768, 768),
        dropout_ratio: float = 0.1,
        loss_decode: dict | Sequence[dict] = (),
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        upsampled = deconv_out_channels[-1]
        super().__init__(
            upsampled,
            conv_out_channels=conv_out_channels,
            conv_kernel_sizes=[1] * len(conv_out_channels),
            loss_decode=loss_decode,
            init_cfg=init_cfg,
        )
        if init_cfg is None:
            self.init_cfg = [*self.init_cfg, _DECONV_INIT]
        self.in_channels = in_channels
        self.deconv_layers = make_deconv_layers(
            in_channels, deconv_out_channels, [4] * len(deconv_out_channels)
        )
        self.dropout = nn.Dropout2d(dropout_ratio)

    def forward(self, feats: Sequence[Tensor]) -> Tensor:
        """Last map (B, in_channels, h, w) to (B, channels, h * 2^n, w * 2^n)."""
        x = self.conv_layers(self.deconv_layers(feats[-1]))
        return self.get_submodule(f'conv_{self.field}')(self.dropout(x))


@MODELS.register_module()
class SapiensV1NormalHead(DeconvDenseHead, NormalHead):
    """Surface normals at half the size of the input.

    ``predict`` resizes, twice (to the input, to the image), and then normalizes.

    Source: Sapiens (arXiv 2408.12569), normal task; its official repository.
    """

    def before_resize(self, values: Tensor) -> Tensor:
        return values

    def activation(self, values: Tensor) -> Tensor:
        return values / (values.square().sum(1, keepdim=True).sqrt() + 1e-5)


@MODELS.register_module()
class SapiensV1DepthHead(DeconvDenseHead, DepthHead):
    """Relative depth, 0 nearest and 1 farthest, at the size of the input.

    Source: Sapiens (arXiv 2408.12569), depth task; its official repository.
    """
