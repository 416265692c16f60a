"""Body-part segmentation head [mmseg]."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from mmseg.models.decode_heads.decode_head import BaseDecodeHead
from torch import Tensor, nn

from sapiens2_mm.registry import MODELS

from ..layers.conv_stack import make_conv_layers, make_deconv_layers


@MODELS.register_module()
class Sapiens2SegHead(BaseDecodeHead):
    """Deconvolutions, refinement convolutions and a 1x1 classifier.

    Four deconvolutions bring the map of patches (1/16) to the size of the input.
    InstanceNorm uses the statistics of the image at hand, so a crop does not give the
    same result as the same region of the whole picture.

    Losses are computed in float32, whatever precision the model runs in.

    Args:
        in_channels: channels of the backbone's last map.
        num_classes: channels of the result; 0 is the background.
        deconv_out_channels: channels after each deconvolution (x2 each).
        deconv_kernel_sizes: 4, 3 or 2, one per deconvolution.
        conv_out_channels: channels after each refinement convolution.
        conv_kernel_sizes: odd, one per refinement convolution.
        dropout_ratio: share of channels that are 0 before the classifier in training.
        loss_decode: one loss or a list; their ``loss_name`` are the keys in the log.
        ignore_index: label that neither loss nor accuracy counts.
        align_corners: of every resize of logits.
        init_cfg: mmengine's; by default convolutions are Kaiming normal (fan out),
            their bias 0, and deconvolutions keep PyTorch's own rule.

    Raises:
        ValueError: for fewer than 2 classes, channels and kernels of different number,
            or a loss with another number of class weights than classes.

    Source: official repository, first public release, segmentation head.
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int = 29,
        deconv_out_channels: Sequence[int] = (512, 256, 128, 64),
        deconv_kernel_sizes: Sequence[int] = (4, 4, 4, 4),
        conv_out_channels: Sequence[int] = (64, 64),
        conv_kernel_sizes: Sequence[int] = (1, 1),
        dropout_ratio: float = 0.0,
        loss_decode: dict | list[dict] | None = None,
        ignore_index: int = 255,
        align_corners: bool = False,
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        if num_classes < 2:
            raise ValueError(
                f'num_classes, with the background, must be >= 2, got {num_classes}'
            )
        channels = [in_channels, *deconv_out_channels, *conv_out_channels][-1]
        if loss_decode is None:
            loss_decode = [
                dict(type='sapiens2_mm.WeightedCrossEntropyLoss'),
                dict(type='sapiens2_mm.Sapiens2DiceLoss'),
            ]
        if init_cfg is None:
            init_cfg = dict(
                type='Kaiming', layer='Conv2d', mode='fan_out', nonlinearity='relu'
            )
        super().__init__(
            in_channels,
            channels,
            num_classes=num_classes,
            out_channels=num_classes,
            dropout_ratio=dropout_ratio,
            loss_decode=loss_decode,
            ignore_index=ignore_index,
            align_corners=align_corners,
            init_cfg=init_cfg,
        )
        self.check_metainfo({})
        self.deconv_layers = make_deconv_layers(
            in_channels, deconv_out_channels, deconv_kernel_sizes
        )
        middle = [in_channels, *deconv_out_channels][-1]
        self.conv_layers = make_conv_layers(
            middle, conv_out_channels, conv_kernel_sizes
        )

    def check_metainfo(self, meta: dict[str, Any]) -> None:
        """Compare the metainfo of a dataset, and the losses, with the head.

        Args:
            meta: ``classes``, ``palette`` and ``ignore_index``, as far as known.

        Raises:
            ValueError: naming both values, if the number of classes or class weights
                is not ``num_classes``, colors are fewer, or the ignored labels differ.
        """
        weights = [getattr(loss, 'class_weight', None) for loss in self._losses()]
        named = [('classes', meta.get('classes'))]
        named += [('class weights', each) for each in weights]
        wrong = [
            f'{len(values)} {name}'
            for name, values in named
            if values is not None and len(values) != self.num_classes
        ]
        # More colors: mmseg keeps those of classes that are not in use.
        if 0 < len(meta.get('palette') or ()) < self.num_classes:
            wrong.append(f'{len(meta["palette"])} colors')
        ignored = meta.get('ignore_index')
        if ignored not in (None, self.ignore_index):
            wrong.append(f'ignored label {ignored}')
        if wrong:
            raise ValueError(
                f'data or loss have {", ".join(wrong)}, the head has '
                f'num_classes={self.num_classes} and ignore_index={self.ignore_index}; '
                'these must agree: set those of model.decode_head, its losses, the '
                'dataset and the metric to the same values'
            )

    def init_weights(self) -> None:
        """Fill all parameters, also those that were made on the meta device."""
        super().init_weights()
        for module in self.deconv_layers:
            if isinstance(module, nn.ConvTranspose2d):
                module.reset_parameters()

    def forward(self, inputs: Sequence[Tensor]) -> Tensor:
        """Logits (B, num_classes, 16 h, 16 w) of the last (B, C, h, w) map."""
        feat = self._transform_inputs(inputs)
        return self.cls_seg(self.conv_layers(self.deconv_layers(feat)))

    def loss_by_feat(
        self, seg_logits: Tensor, batch_data_samples: list[Any]
    ) -> dict[str, Tensor]:
        """Losses and ``acc_seg``, the percentage of right pixels, ignored ones aside.

        Args:
            seg_logits: (B, C, H, W), any float type.
            batch_data_samples: mmseg's, with ``gt_sem_seg`` (1, H', W'); logits of
                another size are resized to it.
        """
        labels = self._stack_batch_gt(batch_data_samples).squeeze(1)
        with torch.autocast(seg_logits.device.type, enabled=False):
            if seg_logits.shape[2:] != labels.shape[1:]:
                seg_logits = self._resize(seg_logits.float(), labels.shape[1:])
            losses: dict[str, Tensor] = {}
            for module in self._losses():
                value = module(seg_logits, labels, ignore_index=self.ignore_index)
                name = module.loss_name
                losses[name] = losses[name] + value if name in losses else value
        losses['acc_seg'] = self._accuracy(seg_logits.detach(), labels)
        return losses

    def predict_by_feat(
        self, seg_logits: Tensor, batch_img_metas: list[dict]
    ) -> Tensor:
        """Logits at the size of the network's input (of the window in slide mode)."""
        meta = batch_img_metas[0]
        size = meta['img_shape']
        if not isinstance(size, torch.Size):  # mmseg's mark of a sliding window
            size = meta.get('pad_shape', size)
        size = tuple(size[:2])
        if seg_logits.shape[2:] == size:
            return seg_logits
        return self._resize(seg_logits, size)

    def _losses(self) -> list[nn.Module]:
        many = isinstance(self.loss_decode, nn.ModuleList)
        return list(self.loss_decode) if many else [self.loss_decode]

    def _resize(self, seg_logits: Tensor, size: Sequence[int]) -> Tensor:
        return F.interpolate(
            seg_logits, tuple(size), mode='bilinear', align_corners=self.align_corners
        )

    def _accuracy(self, seg_logits: Tensor, labels: Tensor) -> Tensor:
        valid = labels != self.ignore_index
        right = (seg_logits.argmax(1) == labels) & valid
        return 100.0 * right.sum() / valid.sum().clamp(min=1)
