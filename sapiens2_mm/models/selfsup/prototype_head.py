"""Projection of a class token to prototype logits."""

import torch
from mmengine.model import BaseModule
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.init import trunc_normal_

from sapiens2_mm.registry import MODELS


@MODELS.register_module()
class PrototypeHead(BaseModule):
    """Three linear layers, a unit vector, and one logit per prototype.

    The unit vector and the logits are float32 also under autocast, so that the center
    is never subtracted from rounded numbers.

    Args:
        in_channels: C of the encoder.
        hidden_dims: width between the linear layers.
        bottleneck_dims: size of the unit vector.
        num_prototypes: K, number of logits.
        prototype_std: of the initial prototypes. Logits start with this standard
            deviation, and targets as good as uniform if it is small against the
            teacher's temperature. None is ``bottleneck_dims ** -0.5``, prototypes as
            long as the vector they are compared with.
        init_cfg: mmengine's.

    Source: DINOv3 (arXiv 2508.10104), whose head Sapiens2 (arXiv 2604.21681) follows
        without giving sizes; the prototypes are not weight-normalized.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_dims: int = 2048,
        bottleneck_dims: int = 256,
        num_prototypes: int = 65536,
        prototype_std: float | None = None,
        init_cfg: dict | None = None,
    ) -> None:
        super().__init__(init_cfg)
        self.num_prototypes = num_prototypes
        self.prototype_std = prototype_std or bottleneck_dims**-0.5
        self.mlp = nn.Sequential(
            nn.Linear(in_channels, hidden_dims),
            nn.GELU(),
            nn.Linear(hidden_dims, hidden_dims),
            nn.GELU(),
            nn.Linear(hidden_dims, bottleneck_dims),
        )
        self.prototypes = nn.Linear(bottleneck_dims, num_prototypes, bias=False)

    def init_weights(self) -> None:
        """Matrices: truncated normal, std 0.02 or ``prototype_std``; biases 0."""
        for module in self.mlp:
            if isinstance(module, nn.Linear):
                trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)
        trunc_normal_(self.prototypes.weight, std=self.prototype_std)
        super().init_weights()

    def forward(self, x: Tensor, frozen_prototypes: bool = False) -> Tensor:
        """(B, C) class tokens to (B, K) float32 logits.

        The gradient of frozen prototypes is 0, not missing, which a distributed run
        would take for an unused parameter.
        """
        x = self.mlp(x)
        weight = self.prototypes.weight
        if frozen_prototypes:
            weight = weight.detach() + 0 * weight
        with torch.autocast(x.device.type, enabled=False):
            x = F.normalize(x.float(), dim=-1)
            return F.linear(x, weight.float())
