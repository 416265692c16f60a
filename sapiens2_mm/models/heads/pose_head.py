"""Top-down heatmap head of Sapiens2 for mmpose's estimators."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from mmengine.structures import InstanceData, PixelData
from mmpose.codecs import UDPHeatmap
from mmpose.models.heads.base_head import BaseHead
from mmpose.registry import KEYPOINT_CODECS
from mmpose.structures import PoseDataSample
from torch import Tensor, nn

from sapiens2_mm.registry import MODELS

from ..codecs import (
    decode_udp_heatmaps,
    encode_targets,
    heatmap_pck,
    packed_targets,
)
from ..layers.conv_stack import make_conv_layers, make_deconv_layers
from ..losses.pose import SEPARABLE_LOSSES
from .pose_passes import (
    decode_in_passes,
    keypoint_passes,
    loss_in_passes,
    to_instances,
)

# Parts of the metainfo with one entry per keypoint, in its raw and its parsed form.
_PER_KEYPOINT = (
    'sigmas',
    'joint_weights',
    'dataset_keypoint_weights',
    'flip_indices',
    'keypoint_colors',
)


@MODELS.register_module()
class Sapiens2PoseHead(BaseHead):
    """Deconvolutions, 1x1 convolutions and a predictor of keypoint heatmaps.

    Input is the last map of the backbone's tuple, (B, C, h, w); output are heatmaps
    (B, K, 4h, 4w) with two deconvolutions, nominal peak 1, no activation. Losses of
    targets that are made here, and predictions, hold few large heatmaps at a time.

    Args:
        in_channels: channels of the backbone's map.
        out_channels: K, number of keypoints.
        deconv_out_channels: channels after each deconvolution (each doubles the
            size).
        deconv_kernel_sizes: kernel size of each deconvolution.
        conv_out_channels: channels after each refinement convolution.
        conv_kernel_sizes: kernel size of each refinement convolution.
        loss: config of the loss; None is ``KeypointMSELoss`` of weight 10.
        decoder: config of an mmpose codec, the one that ``GenerateTarget`` would get
            as ``encoder``. Needed to predict, and to train on ``'keypoints'``.
            Gaussian ``UDPHeatmap`` is decoded by one batched operation on the
            model's device, any other codec by mmpose.
        target: where training targets come from. ``'keypoints'``: made here, on the
            model's device, from ``gt_instances.transformed_keypoints`` and
            ``keypoints_visible`` (end the pipeline with ``PackPoseInputs`` and
            ``pack_transformed=True``, without ``GenerateTarget``); keypoints outside
            the input get weight 0, others their
            ``gt_instance_labels.keypoint_weights`` (``Sapiens2TopdownAffine`` writes
            the ``joint_weights`` of the metainfo there), or else their visibility.
            Our own losses need no heatmaps of them; any other loss, a subclass too,
            gets heatmaps.
            ``'heatmaps'``: heatmaps and weights that ``GenerateTarget`` made in the
            pipeline.
        init_cfg: None is Kaiming normal (fan-out, ReLU gain), bias 0, for
            convolutions and transposed convolutions.

    Raises:
        ValueError: for an unknown ``target``, or a codec that cannot make targets from
            keypoints.

    Source: official heads/pose and configs/pose, first release.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        deconv_out_channels: Sequence[int] = (1024, 768),
        deconv_kernel_sizes: Sequence[int] = (4, 4),
        conv_out_channels: Sequence[int] = (512, 512, 256),
        conv_kernel_sizes: Sequence[int] = (1, 1, 1),
        loss: dict | None = None,
        decoder: dict | None = None,
        target: str = 'keypoints',
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        super().__init__(
            init_cfg or dict(type='Kaiming', layer=['Conv2d', 'ConvTranspose2d'])
        )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.deconv_layers = make_deconv_layers(
            in_channels, deconv_out_channels, deconv_kernel_sizes
        )
        channels = (in_channels, *deconv_out_channels)[-1]
        self.conv_layers = make_conv_layers(
            channels, conv_out_channels, conv_kernel_sizes
        )
        channels = (channels, *conv_out_channels)[-1]
        self.conv_pose = nn.Conv2d(channels, out_channels, kernel_size=1)
        self.loss_module = MODELS.build(
            loss or dict(type='sapiens2_mm.KeypointMSELoss', loss_weight=10.0)
        )
        self.decoder = KEYPOINT_CODECS.build(decoder) if decoder else None
        self.is_udp = (
            isinstance(self.decoder, UDPHeatmap)
            and self.decoder.heatmap_type == 'gaussian'
        )
        targets = ['heatmaps']
        if self.is_udp or self.decoder is None:
            targets.append('keypoints')
        if target not in targets:
            raise ValueError(
                f'target must be one of {targets}, got {target!r}; "keypoints" needs '
                f'the decoder UDPHeatmap with heatmap_type "gaussian", got {decoder}'
            )
        self.target = target
        self.passes = [slice(None)]
        if self.is_udp:
            self.passes = keypoint_passes(out_channels, self.decoder.heatmap_size)

    def check_metainfo(self, meta: dict[str, Any]) -> None:
        """Compare the metainfo of a dataset with the head.

        Args:
            meta: keypoint metainfo, as it stands in a config (``keypoint_info``) or
                parsed by mmpose (``num_keypoints``).

        Raises:
            ValueError: naming all numbers unless keypoints, sigmas, flip indices,
                weights and colors are as many as ``out_channels``.
        """
        counts = {
            key: len(np.atleast_1d(meta[key])) for key in _PER_KEYPOINT if key in meta
        }
        if 'keypoint_info' in meta:
            counts = {'keypoints': len(meta['keypoint_info']), **counts}
        elif 'num_keypoints' in meta:
            counts = {'keypoints': meta['num_keypoints'], **counts}
        if set(counts.values()) - {self.out_channels}:
            numbers = ', '.join(f'{count} {key}' for key, count in counts.items())
            raise ValueError(
                f'metainfo {meta.get("dataset_name")} has {numbers}, the head has '
                f'out_channels={self.out_channels}; these numbers must be equal: '
                "correct the dataset's metainfo or set model.head.out_channels"
            )

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Heatmaps (B, K, H, W) of the last map of ``feats``."""
        return self.conv_pose(self.refine(feats))

    def refine(self, feats: tuple[Tensor, ...]) -> Tensor:
        """What the predictor makes heatmaps of, of their size."""
        return self.conv_layers(self.deconv_layers(feats[-1]))

    def loss(
        self,
        feats: tuple[Tensor, ...],
        batch_data_samples: list[PoseDataSample],
        train_cfg: dict | None = None,
    ) -> dict[str, Tensor]:
        """``loss_kpt`` and, unless ``train_cfg['compute_acc']`` is off, ``acc_pose``.

        ``acc_pose`` is the PCK at 0.05 of the heatmap maxima, computed on the device.
        """
        sample = batch_data_samples[0]
        if self.target == 'heatmaps':
            ready, needed = 'gt_fields' in sample, 'GenerateTarget in the pipeline'
        else:
            ready = self.decoder and 'transformed_keypoints' in sample.gt_instances
            needed = 'a decoder, and pack_transformed=True of PackPoseInputs'
        if not ready:
            raise ValueError(f'target "{self.target}" of the head needs {needed}')
        with_acc = (train_cfg or {}).get('compute_acc', True)
        separable = type(self.loss_module) in SEPARABLE_LOSSES
        if separable and self.target == 'keypoints' and len(self.passes) > 1:
            refined = self.refine(feats)
            return loss_in_passes(self, refined, batch_data_samples, with_acc)
        pred = self.forward(feats)
        if self.target == 'keypoints':
            target, weights = encode_targets(
                batch_data_samples, self.decoder, pred.device
            )
            if not separable:
                target = target.dense()
        else:
            target, weights = packed_targets(batch_data_samples)
        losses = dict(loss_kpt=self.loss_module(pred, target, weights))
        if with_acc:
            losses['acc_pose'] = heatmap_pck(pred, target, weights)
        return losses

    def predict(
        self,
        feats: tuple[Tensor, ...] | list[tuple[Tensor, ...]],
        batch_data_samples: list[PoseDataSample],
        test_cfg: dict | None = None,
    ) -> list[InstanceData] | tuple[list[InstanceData], list[PixelData]]:
        """Decode keypoints; see ``mmpose.HeatmapHead`` for the form of the result.

        Args:
            feats: features, or with ``flip_test`` those of the images and those of
                the mirrored images.
            batch_data_samples: B samples; they carry ``flip_indices``.
            test_cfg: ``flip_test`` averages with the mirrored heatmaps, never
                shifted; ``output_heatmaps`` also returns the heatmaps.
        """
        test_cfg = test_cfg or {}
        flip_indices = batch_data_samples[0].metainfo.get('flip_indices', ())
        output_heatmaps = test_cfg.get('output_heatmaps', False)
        if len(self.passes) > 1 and not output_heatmaps:
            flips = self._flips(flip_indices, test_cfg)
            refined = [self.refine(each) for each in (feats if flips else [feats])]
            self.check_input_size(refined[0], batch_data_samples)
            return to_instances(*decode_in_passes(self, refined, flip_indices))
        heatmaps = self.predict_heatmaps(feats, flip_indices, test_cfg)
        self.check_input_size(heatmaps, batch_data_samples)
        preds = self.decode(heatmaps)
        if output_heatmaps:
            return preds, [PixelData(heatmaps=maps) for maps in heatmaps.detach()]
        return preds

    def check_input_size(
        self, heatmaps: Tensor, batch_data_samples: list[PoseDataSample]
    ) -> None:
        """Compare the heatmaps (B, K, h, w) with the crops that they come from.

        Raises:
            ValueError: naming the sizes, if the decoder has another stride, or the
                crops differ in size.
        """
        sizes = {
            tuple(sample.metainfo.get('input_size', ()))
            for sample in batch_data_samples
        }
        wrong = sizes - {(), self.input_size(heatmaps)} if self.is_udp else ()
        if wrong:
            raise ValueError(
                f'correct heatmap_size of the decoder: {tuple(heatmaps.shape[:-3:-1])} '
                f'belong to an input of {self.input_size(heatmaps)}, not of '
                f'{", ".join(map(str, sorted(wrong)))}'
            )

    def predict_heatmaps(
        self,
        feats: tuple[Tensor, ...] | list[tuple[Tensor, ...]],
        flip_indices: Sequence[int],
        test_cfg: dict,
    ) -> Tensor:
        """Heatmaps (B, K, H, W) to decode; the arguments are those of ``predict``."""
        if not self._flips(flip_indices, test_cfg):
            return self.forward(feats)
        heatmaps, mirrored = (self.forward(each).float() for each in feats)
        return (heatmaps + mirrored.flip(-1)[:, flip_indices]).mul_(0.5)

    def _flips(self, flip_indices: Sequence[int], test_cfg: dict) -> bool:
        """Whether heatmaps are averaged with those of the mirrored images."""
        if not test_cfg.get('flip_test', False):
            return False
        num_indices = len(flip_indices)
        plain = test_cfg.get('flip_mode', 'heatmap') == 'heatmap'
        plain = plain and not test_cfg.get('shift_heatmap', False)
        if num_indices != self.out_channels or not plain:
            raise ValueError(
                f'flip_test of {self.out_channels} heatmaps needs as many '
                f'flip_indices, got {num_indices}, flip_mode="heatmap" and '
                'shift_heatmap=False'
            )
        return True

    def decode(self, batch_outputs: Tensor) -> list[InstanceData]:
        """Keypoints (1, K, 2) and scores (1, K), float32 arrays, of each sample."""
        if not self.is_udp:
            return super().decode(batch_outputs)
        keypoints, scores = decode_udp_heatmaps(
            batch_outputs.detach(),
            self.input_size(batch_outputs),
            self.decoder.blur_kernel_size,
        )
        return to_instances(keypoints, scores)

    def input_size(self, heatmaps: Tensor) -> tuple[float, ...]:
        """(width, height) of the input; the decoder tells the stride, at any size."""
        sizes = zip(
            heatmaps.shape[:-3:-1],
            self.decoder.input_size,
            self.decoder.heatmap_size,
            strict=True,
        )
        return tuple(length * whole / part for length, whole, part in sizes)
