"""Decoder, losses and predictions shared by the heads of dense regression."""

from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from mmengine.model import BaseModule
from torch import Tensor, nn

from sapiens2_mm.registry import MODELS
from sapiens2_mm.structures import DenseDataSample

from ..layers import make_conv_layers, make_upsample_blocks

# What the reference fills its heads with.
DENSE_INIT = [
    dict(type='Kaiming', layer='Conv2d', mode='fan_out', nonlinearity='relu'),
    dict(type='Kaiming', layer='Linear', mode='fan_in', nonlinearity='linear'),
]


class DenseHead(BaseModule):
    """Pixel-shuffle decoder and 1x1 predictor; base class of the dense heads.

    A 3x3 conv, upsampling stages (3x3 conv, pixel shuffle by 2), refining convs, each
    with a norm and SiLU; then the predictor. Parameters carry the official names:
    ``input_conv.0``, ``upsample_blocks.i.0``, ``conv_layers.{0,3,..}``,
    ``conv_<field>``. Without upsampling stages there is no 3x3 conv either, and
    without refining convs nothing but the predictor: a linear probe.

    A subclass says what it predicts::

        field = 'normal'  # reads gt_normal, writes pred_normal, predicts by conv_normal
        channels = 3


        def activation(self, values):  # what makes a prediction of the predictor's map
            return F.normalize(values, dim=1)

    InstanceNorm has no parameters and always uses the statistics of the image at hand,
    so the padding of a letterbox influences the result, in the reference as well.

    Args:
        in_channels: channels of the backbone's last feature map.
        upsample_channels: channels after each upsampling stage; empty for a probe.
        conv_out_channels: channels after each refining conv; may be empty.
        conv_kernel_sizes: odd, one per refining conv.
        loss_decode: config or configs of the losses on the predicted map.
        init_cfg: Kaiming normal by default.

    Raises:
        ValueError: if the refining lists do not fit.

    Source: Sapiens2 paper, dense prediction heads; official repository.
    """

    field: str
    channels: int
    norm_layer: type[nn.Module] = nn.InstanceNorm2d
    default_init = DENSE_INIT

    def __init__(
        self,
        in_channels: int,
        upsample_channels: Sequence[int] = (),
        conv_out_channels: Sequence[int] = (),
        conv_kernel_sizes: Sequence[int] = (),
        loss_decode: dict | Sequence[dict] = (),
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        super().__init__(self.default_init if init_cfg is None else init_cfg)
        self.in_channels = in_channels
        norm = self.norm_layer
        first = ((in_channels,), (3,)) if upsample_channels else ((), ())
        self.input_conv = make_conv_layers(in_channels, *first, norm)
        self.upsample_blocks = make_upsample_blocks(
            in_channels, upsample_channels, norm
        )
        upsampled = (in_channels, *upsample_channels)[-1]
        self.conv_layers = make_conv_layers(
            upsampled, conv_out_channels, conv_kernel_sizes, norm
        )
        decoded = (upsampled, *conv_out_channels)[-1]
        self.add_module(f'conv_{self.field}', nn.Conv2d(decoded, self.channels, 1))
        self.loss_decode = build_losses(loss_decode)

    def check_feature_size(self, feature_size: tuple[int, int]) -> None:
        """Raise ValueError if the head cannot work on a (h, w) feature map."""
        height, width = feature_size
        uses_instance_norm = any(
            isinstance(m, nn.InstanceNorm2d) for m in self.modules()
        )
        if uses_instance_norm and height * width < 2:
            raise ValueError(
                f'{type(self).__name__}: instance norm needs a feature map of at least '
                f'2 cells, got {height}x{width}; enlarge img_size'
            )

    def forward(self, feats: Sequence[Tensor]) -> Tensor:
        """Last map (B, in_channels, h, w) to (B, channels, h * 2^n, w * 2^n)."""
        x = self.conv_layers(self.upsample_blocks(self.input_conv(feats[-1])))
        return self.get_submodule(f'conv_{self.field}')(x)

    def activation(self, values: Tensor) -> Tensor:
        """Values as they are predicted; called once they are resized, and before.

        Args:
            values: (B, channels, H, W) float32, of ``forward`` or resized.
        """
        return values

    def before_resize(self, values: Tensor) -> Tensor:
        """Values of ``forward`` as they are resized to the size of the image."""
        return self.activation(values)

    def loss_mask(self, target: Tensor, mask: Tensor) -> Tensor:
        """Pixels that are trained on, among those of ``mask``."""
        return mask

    def loss(
        self, feats: Sequence[Tensor], data_samples: list[DenseDataSample]
    ) -> dict[str, Tensor]:
        """Named losses against the ``gt_*`` fields of the data samples."""
        pred = self(feats)
        target = stack_targets(data_samples, f'gt_{self.field}', pred.device)
        mask = stack_targets(data_samples, 'gt_mask', pred.device)
        pred = resize_map(pred.float(), target.shape[-2:])
        mask = self.loss_mask(target, mask)
        return apply_losses(self.loss_decode, pred, target, mask)

    def predict(
        self, feats: Sequence[Tensor], data_samples: list[DenseDataSample]
    ) -> list[DenseDataSample]:
        """Put ``pred_*`` maps of the original size, float32, into the samples."""
        preds = self.before_resize(self(feats).float())
        for pred, sample in zip(preds, data_samples, strict=True):
            pred = resize_map(crop_padding(pred, sample), sample.ori_shape)
            pred = outside_to_zero(self.activation(pred)[0], sample)
            for name, values in self.fields(pred).items():
                sample.set_field(values, f'pred_{name}')
        return data_samples

    def predict_batch(
        self, feats: Sequence[Tensor], size: tuple[int, int]
    ) -> dict[str, Tensor]:
        """What ``predict`` finds in images that were neither padded nor resized.

        Args:
            feats: of B images.
            size: (height, width) of the images.

        Returns:
            Predictions by the names of their fields, float32, maps (B, C, H, W).
        """
        maps = resize_map(self.before_resize(self(feats).float()), size)
        return self.fields(self.activation(maps))

    def fields(self, pred: Tensor) -> dict[str, Tensor]:
        """The parts of a predicted map (..., C, H, W) by the names of their fields."""
        return {self.field: pred}


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
        ValueError: if a sample lacks it or has another size; names field and image.
    """
    size = getattr(data_samples[0].get(name), 'shape', None)
    for sample in data_samples:
        if name not in sample or sample.get(name).shape != size:
            raise ValueError(
                f'training needs {name} of one size, which {sample.get("img_path")} '
                'lacks; load it by LoadDenseAnnotations(with_maps=True) and keep it in '
                'PackDenseInputs'
            )
    return torch.stack([sample.get(name) for sample in data_samples]).to(device)


def resize_map(x: Tensor, size: tuple[int, int]) -> Tensor:
    """Bilinear resize of (B, C, H, W), half-pixel centers; nothing if it fits."""
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
