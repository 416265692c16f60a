"""Random weights of the Sapiens2 backbone."""

from mmengine.model import PretrainedInit
from torch import nn
from torch.nn.init import trunc_normal_

from ..layers import LayerScale, RMSNorm, RotaryEmbedding, WindowTokenizer

_STD = 0.02


def pretrained_cfg(init_cfg: dict | list[dict] | None) -> dict | None:
    """The part of an mmengine ``init_cfg`` that names a checkpoint, if there is one."""
    cfgs = [init_cfg] if isinstance(init_cfg, dict) else init_cfg or []
    found = [cfg for cfg in cfgs if cfg['type'] in ('Pretrained', PretrainedInit)]
    return found[-1] if found else None


def init_backbone(backbone: nn.Module) -> None:
    """Fill every parameter and buffer of a backbone.

    Projections and learned tokens: truncated normal, std 0.02; biases 0; norms 1;
    layer scale its initial value; rotary periods by formula.
    """
    for module in backbone.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            trunc_normal_(module.weight, std=_STD)
            nn.init.zeros_(module.bias)
        elif isinstance(module, (RMSNorm, LayerScale, RotaryEmbedding)):
            module.reset_parameters()
        elif isinstance(module, WindowTokenizer):
            trunc_normal_(module.w_cls, std=_STD)
            trunc_normal_(module.local_pos_embed, std=_STD)
    trunc_normal_(backbone.cls_token, std=_STD)
    trunc_normal_(backbone.storage_tokens, std=_STD)
