"""A tiny pretraining model, and views for it."""

import pytest
import torch

pytest.importorskip('mmpretrain')

from sapiens2_mm.models import Sapiens2Pretrain
from sapiens2_mm.registry import MODELS

ARCH = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)


def config(**kwargs) -> dict:
    cfg = dict(
        type='sapiens2_mm.Sapiens2Pretrain',
        backbone=dict(
            type='sapiens2_mm.Sapiens2',
            arch=ARCH,
            img_size=(128, 96),
            rope_dtype='fp32',
            layer_scale_init_value=0.5,
        ),
        neck=dict(
            type='sapiens2_mm.MAEDecoder', embed_dims=32, num_layers=1, num_heads=2
        ),
        head=dict(
            type='sapiens2_mm.PrototypeHead',
            hidden_dims=32,
            bottleneck_dims=16,
            num_prototypes=24,
        ),
        mask_generator=dict(type='sapiens2_mm.BlockPatchMask'),
        reconstruction_loss=dict(type='sapiens2_mm.PatchReconstructionLoss'),
        contrast_loss=dict(type='sapiens2_mm.ViewContrastLoss'),
        koleo_loss=dict(type='sapiens2_mm.KoLeoLoss'),
        centering=dict(type='sapiens2_mm.EMACentering'),
    )
    cfg.update(kwargs)
    return cfg


def mae_only() -> dict:
    return config(head=None, contrast_loss=None, koleo_loss=None, centering=None)


def build(cfg: dict | None = None) -> Sapiens2Pretrain:
    torch.manual_seed(0)
    model = MODELS.build(cfg or config())
    model.init_weights()
    return model.train()


def views(batch_size: int = 3, local: tuple[int, int] = (64, 48)) -> list[torch.Tensor]:
    torch.manual_seed(1)
    big = [torch.randn(batch_size, 3, 128, 96) for _ in range(2)]
    return big + [torch.randn(batch_size, 3, *local) for _ in range(4)]


def total(losses: dict[str, torch.Tensor]) -> torch.Tensor:
    return sum(value for name, value in losses.items() if 'loss' in name)


def config_4k() -> dict:
    """The 4K layout in small: 64-pixel tokens, 32-pixel targets."""
    return config(
        backbone=dict(
            type='sapiens2_mm.Sapiens2',
            arch=dict(ARCH, num_tokenizer_layers=1),
            img_size=(512, 384),
            use_tokenizer=True,
            layer_scale_init_value=0.5,
        ),
        neck=dict(
            type='sapiens2_mm.MAEDecoder',
            out_channels=3072,
            embed_dims=32,
            num_layers=1,
            num_heads=2,
        ),
        reconstruction_loss=dict(
            type='sapiens2_mm.PatchReconstructionLoss', target_scale=0.5
        ),
        num_local_views=1,
    )
