"""Decoder and contract shared by the heads of dense regression."""

from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from mmengine.model import BaseModule
from torch import Tensor, nn

from sapiens2_mm.models.layers import RMSNorm
from sapiens2_mm.registry import MODELS
from sapiens2_mm.structures import DenseDataSample

# What the reference fills its heads with.
DENSE_INIT = [
    dict(type='Kaiming', layer='Conv2d', mode='fan_out', nonlinearity='relu'),
    dict(type='Kaiming', layer='Linear', mode='fan_in', nonlinearity='linear'),
]


class ChannelRMSNorm(nn.Module):
    """RMSNorm over the channels of each pixel; (B, C, H, W) both ways."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = RMSNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.movedim(1, -1)).movedim(-1, 1)


class DenseHead(BaseModule):
    """Pixel-shuffle decoder; base class of the dense heads.

    A 3x3 conv, upsampling stages (3x3 conv, pixel shuffle by 2), refining convs; each
    with a norm and SiLU. A subclass adds its 1x1 predictor, ``forward``, ``loss`` and
    ``predict``. Parameters carry the official names: ``input_conv.0``,
    ``upsample_blocks.i.0``, ``conv_layers.{0,3,..}``.

    InstanceNorm has no parameters and always uses the statistics of the image at hand,
    so the padding of a letterbox influences the result, in the reference as well.

    Args:
        in_channels: channels of the backbone's last feature map.
        upsample_channels: channels after each upsampling stage.
        conv_out_channels: channels after each refining conv; may be empty.
        conv_kernel_sizes: odd, one per refining conv.
        norm_layer: makes a norm from a number of channels.
        loss_decode: config or configs of the losses on the predicted map.
        init_cfg: Kaiming normal by default.

    Raises:
        ValueError: if no upsampling stage is given, or the refining lists do not fit.

    Source: Sapiens2 paper, dense prediction heads; official repository.
    """

    def __init__(
        self,
        in_channels: int,
        upsample_channels: Sequence[int],
        conv_out_channels: Sequence[int] = (),
        conv_kernel_sizes: Sequence[int] = (),
        norm_layer: type[nn.Module] = nn.InstanceNorm2d,
        loss_decode: dict | Sequence[dict] = (),
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        super().__init__(DENSE_INIT if init_cfg is None else init_cfg)
        name = type(self).__name__
        if not upsample_channels:
            raise ValueError(f'{name}: upsample_channels needs at least one entry')
        if len(conv_out_channels) != len(conv_kernel_sizes):
            raise ValueError(
                f'{name}: conv_out_channels and conv_kernel_sizes need one entry per '
                f'conv, got {list(conv_out_channels)} and {list(conv_kernel_sizes)}'
            )
        if any(size % 2 == 0 for size in conv_kernel_sizes):
            raise ValueError(
                f'{name}: conv_kernel_sizes must be odd, got {list(conv_kernel_sizes)}'
            )
        self.in_channels = in_channels
        self.input_conv = nn.Sequential(
            nn.Conv2d(in_channels, in_channels, 3, padding=1),
            norm_layer(in_channels),
            nn.SiLU(inplace=True),
        )
        channels = in_channels
        self.upsample_blocks = nn.ModuleList()
        for out_channels in upsample_channels:
            block = nn.Sequential(
                nn.Conv2d(channels, 4 * out_channels, 3, padding=1),
                nn.PixelShuffle(2),
                norm_layer(out_channels),
                nn.SiLU(inplace=True),
            )
            self.upsample_blocks.append(block)
            channels = out_channels
        convs: list[nn.Module] = []
        for out_channels, size in zip(
            conv_out_channels, conv_kernel_sizes, strict=True
        ):
            convs += [
                nn.Conv2d(channels, out_channels, size, padding=size // 2),
                norm_layer(out_channels),
                nn.SiLU(inplace=True),
            ]
            channels = out_channels
        self.conv_layers = nn.Sequential(*convs)
        self.decoded_channels = channels
        self.loss_decode = build_losses(loss_decode)

    def check_feature_size(self, feature_size: tuple[int, int]) -> None:
        """Raise ValueError if the head cannot work on a (h, w) feature map."""
        height, width = feature_size
        uses_instance_norm = isinstance(self.input_conv[1], nn.InstanceNorm2d)
        if uses_instance_norm and height * width < 2:
            raise ValueError(
                f'{type(self).__name__}: instance norm needs a feature map of at least '
                f'2 cells, got {height}x{width}; the smallest usable one is 1x2 or '
                '2x1, so enlarge img_size'
            )

    def decode(self, feats: Sequence[Tensor]) -> Tensor:
        """Last feature map (B, in_channels, h, w) to (B, C, h * 2^n, w * 2^n)."""
        x = self.input_conv(feats[-1])
        for block in self.upsample_blocks:
            x = block(x)
        return self.conv_layers(x)

    def forward(self, feats: Sequence[Tensor]) -> Tensor:
        raise NotImplementedError

    def loss(
        self, feats: Sequence[Tensor], data_samples: list[DenseDataSample]
    ) -> dict[str, Tensor]:
        """Named losses against the ``gt_*`` fields of the data samples."""
        raise NotImplementedError

    def predict(
        self, feats: Sequence[Tensor], data_samples: list[DenseDataSample]
    ) -> list[DenseDataSample]:
        """Put ``pred_*`` maps of the original size, float32, into the samples."""
        raise NotImplementedError


def build_losses(config: dict | Sequence[dict]) -> nn.ModuleList:
    """Build one or several losses."""
    configs = [config] if isinstance(config, dict) else config
    return nn.ModuleList(MODELS.build(item) for item in configs)


def apply_losses(modules: Iterable[nn.Module], *args: Tensor) -> dict[str, Tensor]:
    """Call each loss with ``args``; losses of one name are added up."""
    return add_losses(*({module.loss_name: module(*args)} for module in modules))


def add_losses(*groups: dict[str, Tensor]) -> dict[str, Tensor]:
    """Join named losses; those of one name are added up."""
    losses: dict[str, Tensor] = {}
    for group in groups:
        for name, value in group.items():
            losses[name] = losses[name] + value if name in losses else value
    return losses


def stack_targets(
    data_samples: list[DenseDataSample], name: str, device: torch.device
) -> Tensor:
    """Batch of one annotation.

    Raises:
        ValueError: if a sample lacks it or sizes differ; names the field and the
            image.
    """
    for sample in data_samples:
        if name not in sample:
            raise ValueError(
                f'training needs {name}, which the sample of {sample.get("img_path")} '
                'lacks; load it by sapiens2_mm.LoadDenseAnnotations and keep it in '
                'sapiens2_mm.PackDenseInputs'
            )
    values = [sample.get(name) for sample in data_samples]
    if len(sizes := {tuple(value.shape) for value in values}) > 1:
        raise ValueError(
            f'training needs {name} of one size, got {sorted(sizes)}; with_maps=False '
            'is for the test pipeline only'
        )
    return torch.stack(values).to(device)


def resize_map(x: Tensor, size: tuple[int, int]) -> Tensor:
    """Bilinear resize of (B, C, H, W), half-pixel centres; nothing if it fits."""
    if tuple(x.shape[-2:]) == tuple(size):
        return x
    return F.interpolate(x, size=tuple(size), mode='bilinear', align_corners=False)


def crop_padding(x: Tensor, sample: DenseDataSample) -> Tensor:
    """Cut the letterbox padding off a predicted map.

    Args:
        x: (C, H, W), of one image.
        sample: with ``img_shape`` and, if the image was padded, ``padding`` (left,
            right, top, bottom).

    Returns:
        (1, C, h, w) float32, the part of the map that shows the image.
    """
    height, width = sample.img_shape
    x = resize_map(x[None].float(), (height, width))
    left, right, top, bottom = sample.get('padding', (0, 0, 0, 0))
    return x[..., top : height - bottom, left : width - right]


def outside_to_zero(x: Tensor, sample: DenseDataSample) -> Tensor:
    """Zero a (C, H, W) map outside the sample's ``pred_mask``, if it has one."""
    if 'pred_mask' not in sample:
        return x
    return torch.where(sample.pred_mask.to(x.device), x, torch.zeros_like(x))
