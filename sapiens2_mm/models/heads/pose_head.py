"""Top-down heatmap head of Sapiens2 for mmpose's estimators."""

import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from mmengine.logging import print_log
from mmengine.structures import InstanceData, PixelData
from mmpose.codecs import UDPHeatmap
from mmpose.models.heads.base_head import BaseHead
from mmpose.registry import KEYPOINT_CODECS
from mmpose.structures import PoseDataSample
from torch import Tensor, nn

from sapiens2_mm.datasets.metainfo.humans308 import METAINFO
from sapiens2_mm.datasets.metainfo.keypoint_metainfo import keypoint_groups
from sapiens2_mm.datasets.pose.humans308_dataset import Humans308Dataset
from sapiens2_mm.registry import MODELS

from ..codecs.udp_heatmap import decode_udp_heatmaps, encode_udp_heatmaps, heatmap_pck
from ..layers.conv_stack import make_conv_layers, make_deconv_layers


@MODELS.register_module()
class Sapiens2PoseHead(BaseHead):
    """Deconvolutions, 1x1 convolutions and a predictor of keypoint heatmaps.

    Input is the last map of the backbone's tuple, (B, C, h, w); output are heatmaps
    (B, K, 4h, 4w) with two deconvolutions, nominal peak 1, no activation.

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
            the input get weight 0. ``'heatmaps'``: taken from
            ``gt_fields.heatmaps``, made in the pipeline by ``GenerateTarget``.
        absent_weight: weight of keypoints that are invisible or outside the input,
            whose target is an empty heatmap. Above 0 the model learns to be silent
            where a keypoint is not in the picture; only for data in which each
            visible keypoint is labelled. 0 as in the official code: such keypoints
            train nothing.
        group_weights: weight in the loss of the keypoints of each group of the table
            (of the 308: body, foot, left_hand, right_hand, extra_body, face);
            keypoints of other groups, or of none, weigh 1, as all do in the official
            code. A table is needed: ``metainfo``, or the one of the 308 keypoints if
            there are as many. Groups that it lacks are named in a warning.
        metainfo: keypoint table in the form of ``Humans308Dataset``'s. If given, it
            is compared with ``out_channels`` here, and mirrors the flip test of
            samples that carry no ``flip_indices``.
        init_cfg: None is Kaiming normal (fan-out, ReLU gain), bias 0, for
            convolutions and transposed convolutions.

    Raises:
        TypeError: if ``group_weights`` is no dict.
        ValueError: for an unknown ``target``, a weight that is no finite number of at
            least 0, a codec that cannot make targets from keypoints, or a table of
            another number of keypoints than ``out_channels``.

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
        absent_weight: float = 0.0,
        group_weights: dict[str, float] | None = None,
        metainfo: dict | None = None,
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
        if target not in ('keypoints', 'heatmaps'):
            raise ValueError(
                f'{self._name}: target must be "keypoints" or "heatmaps", '
                f'got {target!r}'
            )
        if target == 'keypoints' and self.decoder is not None and not self.is_udp:
            raise ValueError(
                f'{self._name}: target "keypoints" needs the decoder UDPHeatmap with '
                f'heatmap_type "gaussian", got {decoder}; set target="heatmaps" and '
                'add GenerateTarget to the training pipeline'
            )
        self.target = target
        self._check_weight('absent_weight', absent_weight)
        self.absent_weight = absent_weight
        self.flip_indices: list[int] | None = None
        groups: dict[str, list[int]] = {}
        if metainfo is not None:
            table = Humans308Dataset._load_metainfo(metainfo)
            self.flip_indices = table['flip_indices']
            self._check_flip_indices(self.flip_indices)
            groups = table.get('keypoint_groups', {})
        elif out_channels == len(METAINFO['keypoint_info']):
            groups = keypoint_groups(METAINFO)
        weights = self._keypoint_weights(group_weights or {}, groups)
        self.register_buffer('keypoint_weights', weights, persistent=False)

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _check_weight(self, name: str, value: float) -> None:
        if not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise ValueError(
                f'{self._name}: {name} must be a finite number of at least 0, '
                f'got {value!r}'
            )

    def _keypoint_weights(
        self, group_weights: dict[str, float], groups: dict[str, list[int]]
    ) -> Tensor | None:
        """Weight of each keypoint, (K,), or None if all weigh 1."""
        if not isinstance(group_weights, dict):
            raise TypeError(
                f'{self._name}: group_weights must be a dict of a weight per group, '
                f'got {group_weights!r}'
            )
        for name, weight in group_weights.items():
            self._check_weight(f'group_weights[{name!r}]', weight)
        named = [name for name in group_weights if name in groups]
        if len(named) < len(group_weights):
            missing = [name for name in group_weights if name not in groups]
            print_log(
                f'{self._name}: group_weights for {missing} change nothing: the '
                f'keypoint table has the groups {sorted(groups)}',
                logger='current',
                level=logging.WARNING,
            )
        if not named:
            return None
        weights = torch.ones(self.out_channels)
        for name in named:
            weights[groups[name]] = group_weights[name]
        return weights

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Heatmaps (B, K, H, W) of the last map of ``feats``."""
        return self.conv_pose(self.conv_layers(self.deconv_layers(feats[-1])))

    def loss(
        self,
        feats: tuple[Tensor, ...],
        batch_data_samples: list[PoseDataSample],
        train_cfg: dict | None = None,
    ) -> dict[str, Tensor]:
        """``loss_kpt`` and, unless ``train_cfg['compute_acc']`` is off, ``acc_pose``.

        ``acc_pose`` is the PCK at 0.05 of the heatmap maxima, computed on the device.
        """
        pred = self.forward(feats)
        if self.target == 'keypoints':
            target, weights = self._encode(batch_data_samples, pred)
        else:
            target, weights = self._packed_targets(batch_data_samples)
        if pred.shape != target.shape:
            raise ValueError(
                f'{self._name}: the head makes heatmaps of shape {tuple(pred.shape)} '
                f'(B, K, H, W), the targets have {tuple(target.shape)}; input size, '
                'codec and out_channels must agree'
            )
        factors = weights
        if self.absent_weight:
            factors = factors.masked_fill(weights <= 0, self.absent_weight)
        if self.keypoint_weights is not None:
            factors = factors * self.keypoint_weights
        losses = dict(loss_kpt=self.loss_module(pred, target, factors))
        if (train_cfg or {}).get('compute_acc', True):
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
        if test_cfg.get('flip_test', False):
            flip_indices = self._flip_indices_of(batch_data_samples[0], test_cfg)
            heatmaps, mirrored = (self.forward(each).float() for each in feats)
            heatmaps = (heatmaps + mirrored.flip(-1)[:, flip_indices]).mul_(0.5)
        else:
            heatmaps = self.forward(feats)
        preds = self.decode(heatmaps)
        if test_cfg.get('output_heatmaps', False):
            return preds, [PixelData(heatmaps=maps) for maps in heatmaps.detach()]
        return preds

    def decode(self, batch_outputs: Tensor) -> list[InstanceData]:
        """Keypoints (1, K, 2) and scores (1, K), float32 arrays, of each sample."""
        if self.decoder is None:
            raise ValueError(
                f'{self._name}: prediction needs a decoder, for example decoder='
                "dict(type='mmpose.UDPHeatmap', input_size=..., heatmap_size=...)"
            )
        if not self.is_udp:
            return super().decode(batch_outputs)
        size = tuple(batch_outputs.shape[:-3:-1])
        if size != tuple(self.decoder.heatmap_size):
            raise ValueError(
                f'{self._name}: heatmaps of width and height {size} do not fit '
                f'heatmap_size {tuple(self.decoder.heatmap_size)} of the decoder'
            )
        keypoints, scores = decode_udp_heatmaps(
            batch_outputs.detach(),
            self.decoder.input_size,
            self.decoder.blur_kernel_size,
        )
        # One transfer; each person is an instance of its own.
        decoded = torch.cat((keypoints, scores.unsqueeze(-1)), dim=-1).cpu().numpy()
        return [
            InstanceData(keypoints=person[..., :2], keypoint_scores=person[..., 2])
            for person in decoded[:, None]
        ]

    def _encode(
        self, batch_data_samples: list[PoseDataSample], pred: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Targets and weights made from keypoints on the device of ``pred``."""
        if self.decoder is None:
            raise ValueError(
                f'{self._name}: target "keypoints" needs a decoder, which also encodes'
            )
        points = []
        for sample in batch_data_samples:
            instances: Any = sample.gt_instances
            if 'transformed_keypoints' not in instances:
                raise ValueError(
                    f'{self._name}: gt_instances.transformed_keypoints is missing; set '
                    'pack_transformed=True of PackPoseInputs, or target="heatmaps"'
                )
            visible = np.asarray(instances.keypoints_visible, dtype=np.float32)
            if visible.ndim == 3:  # mmpose's KeypointConverter adds a weight
                visible = visible[..., 0]
            keypoints = np.asarray(instances.transformed_keypoints, dtype=np.float32)
            points.append(np.dstack((keypoints[..., :2], visible)))
        batch = torch.from_numpy(np.concatenate(points)).to(pred.device)
        if batch.shape[1] != self.out_channels:
            raise ValueError(
                f'{self._name}: the samples have {batch.shape[1]} keypoints, the head '
                f'has out_channels {self.out_channels}; they must be equal'
            )
        keypoints, visible = batch[..., :2], batch[..., 2]
        size = keypoints.new_tensor(self.decoder.input_size)
        inside = ((keypoints >= 0) & (keypoints < size)).all(-1)
        return encode_udp_heatmaps(
            keypoints,
            visible * inside,
            self.decoder.input_size,
            self.decoder.heatmap_size,
            self.decoder.sigma,
        )

    def _packed_targets(
        self, batch_data_samples: list[PoseDataSample]
    ) -> tuple[Tensor, Tensor]:
        """Targets and weights that the pipeline made."""
        if any('gt_fields' not in sample for sample in batch_data_samples):
            raise ValueError(
                f'{self._name}: target "heatmaps" needs gt_fields.heatmaps; add '
                'GenerateTarget to the training pipeline, or set target="keypoints"'
            )
        target = torch.stack([d.gt_fields.heatmaps for d in batch_data_samples])
        weights = torch.cat(
            [d.gt_instance_labels.keypoint_weights for d in batch_data_samples]
        )
        return target, weights

    def _flip_indices_of(self, sample: PoseDataSample, test_cfg: dict) -> list[int]:
        """Checked ``flip_indices`` of the sample, or else of the head."""
        flip_mode = test_cfg.get('flip_mode', 'heatmap')
        if flip_mode != 'heatmap' or test_cfg.get('shift_heatmap', False):
            raise ValueError(
                f'{self._name}: the flip test mirrors heatmaps without a shift; set '
                'flip_mode="heatmap" and shift_heatmap=False in test_cfg'
            )
        flip_indices = sample.metainfo.get('flip_indices', self.flip_indices)
        if flip_indices is None:
            raise ValueError(
                f'{self._name}: flip_test needs flip_indices; give the keypoint table '
                'as metainfo of the dataset or of the head, or switch flip_test off'
            )
        self._check_flip_indices(flip_indices)
        return flip_indices

    def _check_flip_indices(self, flip_indices: Sequence[int]) -> None:
        if len(flip_indices) != self.out_channels:
            raise ValueError(
                f'{self._name}: the keypoint table has {len(flip_indices)} '
                f'flip_indices, the head has out_channels {self.out_channels}; set '
                'out_channels to the number of keypoints of the table'
            )
