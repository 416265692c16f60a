"""Tiny heads of the dense tasks."""

import torch

from sapiens2_mm.models import (
    AlbedoHead,
    DepthHead,
    MattingHead,
    NormalHead,
    PointmapHead,
)

TINY = dict(
    in_channels=8,
    upsample_channels=(8, 8),
    conv_out_channels=(4,),
    conv_kernel_sizes=(3,),
)
TINY_SCALE = dict(scale_conv_out_channels=(8,), scale_hidden_channels=(4,))
HEADS = [NormalHead, AlbedoHead, DepthHead, MattingHead, PointmapHead]


def tiny_head(cls, feature_size=(4, 3), **kwargs):
    torch.manual_seed(0)
    if cls is PointmapHead:
        kwargs = dict(feature_size=feature_size, **TINY_SCALE, **kwargs)
    head = cls(**TINY, **kwargs)
    head.init_weights()
    return head.eval()
