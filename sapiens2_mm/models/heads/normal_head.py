"""Head that predicts surface normals."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from sapiens2_mm.registry import MODELS
from sapiens2_mm.structures import DenseDataSample

from .dense_head import (
    DenseHead,
    apply_losses,
    crop_padding,
    outside_to_zero,
    resize_map,
    stack_targets,
)


@MODELS.register_module()
class NormalHead(DenseHead):
    """Surface normals in the camera frame (X right, Y down, Z forward).

    ``predict`` returns unit vectors. It normalises, removes the letterbox, resizes,
    and normalises again; the reference leaves out the last step, so its vectors are
    shorter than 1 at edges. A vector of length 0 stays 0.

    Args:
        kwargs: see ``DenseHead``.

    Source: Sapiens2 official repository, ``NormalHead``.
    """

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        self.conv_normal = nn.Conv2d(self.decoded_channels, 3, 1)

    def forward(self, feats: Sequence[Tensor]) -> Tensor:
        """(B, 3, H, W), not normalised."""
        return self.conv_normal(self.decode(feats))

    def loss(
        self, feats: Sequence[Tensor], data_samples: list[DenseDataSample]
    ) -> dict[str, Tensor]:
        pred = self(feats)
        target = stack_targets(data_samples, 'gt_normal', pred.device)
        mask = stack_targets(data_samples, 'gt_mask', pred.device)
        pred = resize_map(pred.float(), target.shape[-2:])
        return apply_losses(self.loss_decode, pred, target, mask)

    def predict(
        self, feats: Sequence[Tensor], data_samples: list[DenseDataSample]
    ) -> list[DenseDataSample]:
        normals = F.normalize(self(feats).float(), dim=1, eps=1e-8)
        for normal, sample in zip(normals, data_samples, strict=True):
            normal = resize_map(crop_padding(normal, sample), sample.ori_shape)
            normal = F.normalize(normal[0], dim=0, eps=1e-8)
            sample.pred_normal = outside_to_zero(normal, sample)
        return data_samples
