"""Head that predicts relative depth."""

from collections.abc import Sequence

from torch import Tensor, nn

from sapiens2_mm.registry import MODELS
from sapiens2_mm.structures import DenseDataSample

from .dense_head import (
    DENSE_INIT,
    DenseHead,
    apply_losses,
    crop_padding,
    outside_to_zero,
    resize_map,
    stack_targets,
)

# The loss has no gradient where the prediction is not positive: half of the pixels, if
# it starts around 0, and these pull the others after them. So it starts at one half.
DEPTH_INIT = [
    *DENSE_INIT,
    dict(type='Normal', std=0.01, bias=0.5, override=dict(name='conv_depth')),
]


@MODELS.register_module()
class DepthHead(DenseHead):
    """Depth of a person relative to itself, 0 nearest and 1 farthest.

    For data that has depth but no camera; with a camera, ``PointmapHead`` gives
    metres. The output has no activation. The decoder is that of the other dense
    heads; the depth models of the first Sapiens have another one and do not load.
    Untrained, it predicts about 0.5 everywhere.

    Args:
        kwargs: see ``DenseHead``.

    Source: Sapiens (arXiv 2408.12569), depth task.
    """

    def __init__(self, **kwargs) -> None:
        super().__init__(**{'init_cfg': DEPTH_INIT, **kwargs})
        self.conv_depth = nn.Conv2d(self.decoded_channels, 1, 1)

    def forward(self, feats: Sequence[Tensor]) -> Tensor:
        """(B, 1, H, W), unbounded."""
        return self.conv_depth(self.decode(feats))

    def loss(
        self, feats: Sequence[Tensor], data_samples: list[DenseDataSample]
    ) -> dict[str, Tensor]:
        """The nearest pixel, whose target is 0, has no logarithm and is left out."""
        pred = self(feats)
        target = stack_targets(data_samples, 'gt_depth', pred.device)
        mask = stack_targets(data_samples, 'gt_mask', pred.device)
        pred = resize_map(pred.float(), target.shape[-2:])
        return apply_losses(self.loss_decode, pred, target, mask & (target > 1e-6))

    def predict(
        self, feats: Sequence[Tensor], data_samples: list[DenseDataSample]
    ) -> list[DenseDataSample]:
        depths = self(feats).float()
        for depth, sample in zip(depths, data_samples, strict=True):
            depth = resize_map(crop_padding(depth, sample), sample.ori_shape)[0]
            sample.pred_depth = outside_to_zero(depth, sample)
        return data_samples
