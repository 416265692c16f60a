"""Pretraining of the first Sapiens is mmpretrain's MAE, on our algorithm."""

import numpy as np
import pytest
import torch

pytest.importorskip('mmpretrain')

from mmengine.config import Config
from mmpretrain.models import MAE, MAEPretrainDecoder, MAEPretrainHead, MAEViT
from mmpretrain.structures import DataSample

from sapiens2_mm.registry import MODELS

ARCH = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)
DECODER = dict(embed_dims=16, num_layers=2, num_heads=2)
NAMES = {  # theirs -> ours, of the decoder
    'decoder_embed.': 'embed.',
    'decoder_blocks.': 'blocks.',
    'attn.': '',
    'ffn.layers.0.0.': 'ffn.0.',
    'ffn.layers.1.': 'ffn.2.',
    'decoder_pred.': 'predict.',
}


@pytest.fixture
def theirs() -> MAE:
    torch.manual_seed(0)
    model = MAE(
        backbone=MAEViT(ARCH, img_size=64, mask_ratio=0.75),
        neck=MAEPretrainDecoder(
            num_patches=16,
            embed_dim=32,
            decoder_embed_dim=16,
            decoder_depth=2,
            decoder_num_heads=2,
        ),
        head=MAEPretrainHead(
            dict(type='mmpretrain.PixelReconstructionLoss', criterion='L2'),
            norm_pix=True,
        ),
    )
    model.init_weights()
    return model


@pytest.fixture
def ours(repo_dir):
    folder = repo_dir / 'configs' / 'sapiens_v1'
    (path,) = folder.glob('sapiens-0.3b_mae_*.py')
    cfg = Config.fromfile(path).model
    cfg.backbone.update(arch=ARCH, img_size=(64, 64))
    cfg.neck.update(DECODER)
    model = MODELS.build(cfg)
    model.init_weights()
    return model


def copied_names(name: str) -> str:
    for old, new in NAMES.items():
        name = name.replace(old, new)
    return 'norm.' + name[4:] if name.startswith('ln1.') else name


def copy_weights(theirs: MAE, ours) -> None:
    ours.backbone.load_state_dict(theirs.backbone.state_dict())
    state = {copied_names(k): v for k, v in theirs.neck.state_dict().items()}
    del state['decoder_pos_embed']  # computed by ours
    # A patch of theirs has its three colors innermost, one of ours outermost.
    for name in ('predict.weight', 'predict.bias'):
        values = state[name].unflatten(0, (256, 3)).transpose(0, 1)
        state[name] = values.flatten(0, 1)
    ours.neck.load_state_dict(state)


def test_loss_and_gradients_are_those_of_mae(theirs, ours):
    assert ours.teacher is None and ours.head is None
    torch.testing.assert_close(ours.backbone.pos_embed, theirs.backbone.pos_embed)
    copy_weights(theirs, ours)
    images = torch.randn(3, 3, 64, 64)
    latent, mask, ids_restore = theirs.backbone(images)
    expected = theirs.head.loss(theirs.neck(latent, ids_restore), images, mask)
    expected.backward()
    samples = [DataSample() for _ in images]
    for sample, row in zip(samples, mask, strict=True):
        sample.set_field(np.flatnonzero(row == 0)[None], 'ids_keep')
    losses = ours.loss([images], samples)
    assert list(losses) == ['loss_mae']
    assert losses['loss_mae'].item() == pytest.approx(expected.item(), abs=1e-5)
    assert expected > 0.5
    losses['loss_mae'].backward()
    for name in ('cls_token', 'patch_embed.projection.weight', 'layers.0.ln1.bias'):
        mine, other = (m.backbone.get_parameter(name).grad for m in (ours, theirs))
        assert other.abs().max() > 1e-4
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-5)
    assert ours.backbone.pos_embed.grad is None


def test_masks_are_single_patches(ours):
    """A quarter of the patches stays, and no rectangles are drawn."""
    assert ours.mask_generator.block_prob == 0
    mask = ours._token_mask(None, 2, (4, 4), torch.device('cpu'))
    assert mask.ids_keep.shape == (2, 4)
