import math

import pytest
import torch
from tiny_pretrain import ARCH, build, config, config_4k, mae_only, total, views
from torch import nn

from sapiens2_mm.models.selfsup import TokenMask
from sapiens2_mm.registry import MODELS


@pytest.mark.parametrize(
    'cfg',
    [
        config(),
        mae_only(),
        config(koleo_loss=None),
        config(centering=dict(type='sapiens2_mm.SinkhornCentering')),
    ],
    ids=['joint', 'mae only', 'no koleo', 'sinkhorn'],
)
def test_every_trainable_parameter_gets_a_gradient(cfg):
    model = build(cfg)
    total(model(views(), None, 'loss')).backward()
    missing = [
        name
        for name, param in model.named_parameters()
        if param.requires_grad and param.grad is None
    ]
    assert missing == []


def test_log_values_are_no_losses():
    losses = build().loss(views())
    assert {name for name in losses if 'loss' in name} == {
        'loss_mae',
        'loss_contrast',
        'loss_koleo',
    }
    entropy, distance = losses['teacher_entropy'], losses['teacher_kl_uniform']
    torch.testing.assert_close(entropy + distance, torch.tensor(24.0).log())
    assert 0 < float(entropy) < float(torch.tensor(24.0).log())
    information = losses['teacher_mutual_information']
    torch.testing.assert_close(entropy + information, losses['teacher_entropy_of_mean'])
    assert 0 < float(information) < math.log(6)  # 2 views of 3 images


def test_one_pass_equals_separate_passes():
    """6x8 global tokens with a quarter visible and 3x4 local ones have 12 each."""
    model = build()
    inputs = views()
    globals_, locals_ = torch.cat(inputs[:2]), torch.cat(inputs[2:])
    mask = model.mask_generator(2, 3, (8, 6))
    assert mask.ids_keep.shape[1] == 12
    calls = []
    encode = model.backbone.encode
    model.backbone.encode = lambda *args: calls.append(1) or encode(*args)
    patches, cls_token = model.encode_views(globals_, mask, locals_)
    assert len(calls) == 1
    alone = model.backbone(globals_, mask.ids_keep)[-1]
    alone_l = model.backbone(locals_)[-1]
    torch.testing.assert_close(patches, alone[:, 9:], rtol=0, atol=1e-5)
    expected = torch.cat([alone[:, 0], alone_l[:, 0]])
    torch.testing.assert_close(cls_token, expected, rtol=0, atol=1e-5)


def test_local_views_of_another_length_take_a_second_pass():
    model = build()
    losses = model.loss(views(local=(96, 64)))
    total(losses).backward()
    assert model.backbone.cls_token.grad is not None


def test_masked_pixels_reach_nothing():
    model = build()
    images = torch.randn(2, 3, 128, 96)
    mask = model.mask_generator(1, 2, (8, 6))
    hidden = (
        mask.mask.view(2, 1, 8, 6).repeat_interleave(16, 2).repeat_interleave(16, 3)
    )
    before = model.encode_views(images, mask, None)
    after = model.encode_views(torch.where(hidden, images + 7, images), mask, None)
    for x, y in zip(before, after, strict=True):
        assert torch.equal(x, y)


def test_masked_windows_reach_nothing():
    model = build(config_4k())
    images = torch.randn(1, 3, 512, 384)
    mask = model.mask_generator(1, 1, (8, 6))
    hidden = mask.mask.view(1, 1, 8, 6).repeat_interleave(64, 2)
    hidden = hidden.repeat_interleave(64, 3)
    before = model.encode_views(images, mask, None)
    after = model.encode_views(torch.where(hidden, images + 7, images), mask, None)
    for x, y in zip(before, after, strict=True):
        assert torch.equal(x, y)


def test_visible_patches_have_no_reconstruction_gradient():
    model = build(mae_only())
    images = torch.randn(2, 3, 128, 96)
    mask = model.mask_generator(1, 2, (8, 6))
    tokens, _ = model.encode_views(images, mask, None)
    pred = model.neck(tokens, mask, (8, 6)).detach().requires_grad_()
    model.reconstruction_loss(pred, images, mask.mask, (8, 6)).backward()
    assert float(pred.grad[~mask.mask].abs().max()) == 0
    assert (pred.grad[mask.mask].abs().sum(-1) > 0).all()


def test_order_of_the_visible_tokens_does_not_matter():
    model = build()
    images = torch.randn(2, 3, 128, 96)
    mask = model.mask_generator(1, 2, (8, 6))
    order = torch.randperm(12)
    shuffled = TokenMask(mask.mask, mask.ids_keep[:, order])
    losses = []
    for m in (mask, shuffled):
        patches, cls_token = model.encode_views(images, m, None)
        pred = model.neck(patches, m, (8, 6))
        losses.append(model.reconstruction_loss(pred, images, m.mask, (8, 6)))
        losses.append(cls_token)
    torch.testing.assert_close(losses[2], losses[0])
    torch.testing.assert_close(losses[3], losses[1])


def test_prototypes_are_frozen_for_the_first_steps():
    model = build(config(frozen_prototype_iters=2))
    moved = []
    for _ in range(4):
        model.zero_grad()
        total(model.loss(views())).backward()
        moved.append(bool(model.head.prototypes.weight.grad.abs().max() > 0))
        model.after_step()
    assert moved == [False, False, True, True]


def test_masks_change_while_training_and_are_fixed_in_evaluation():
    model = build(mae_only())
    inputs = views()
    first, second = (float(model.loss(inputs)['loss_mae'].detach()) for _ in range(2))
    assert first != second
    assert int(model.num_samples) == 6
    model.eval()
    third, fourth = (float(model.loss(inputs)['loss_mae'].detach()) for _ in range(2))
    assert third == fourth


def test_reconstruct_keeps_visible_patches():
    model = build().eval()
    images = torch.randn(2, 3, 128, 96)
    mask = model.mask_generator(1, 2, (8, 6))
    hidden, filled = model.reconstruct(images, mask)
    masked = mask.mask.view(2, 1, 8, 6).repeat_interleave(16, 2)
    masked = masked.repeat_interleave(16, 3).expand_as(images)
    assert torch.equal(filled[~masked], images[~masked])
    assert float(hidden[masked].abs().max()) == 0
    assert not torch.allclose(filled[masked], images[masked], atol=0.1)


def test_reconstruction_at_half_size_with_the_tokenizer():
    model = build(config_4k())
    inputs = [torch.randn(2, 3, 512, 384)] * 2 + [torch.randn(2, 3, 256, 192)]
    total(model.loss(inputs)).backward()
    assert model.backbone.tokenizer.w_cls.grad is not None
    hidden, _ = model.reconstruct(inputs[0], model.mask_generator(1, 2, (8, 6)))
    assert hidden.shape == (2, 3, 256, 192)


def test_tensor_mode_gives_backbone_features():
    model = build().eval()
    x = torch.randn(1, 3, 128, 96)
    assert torch.equal(model(x, mode='tensor')[0], model.backbone(x)[0])


def test_bf16_autocast_trains():
    model = build()
    with torch.autocast('cpu', dtype=torch.bfloat16):
        losses = model.loss(views())
    total(losses).backward()
    assert all(value.dtype == torch.float32 for value in losses.values())
    assert all(torch.isfinite(value) for value in losses.values())


@pytest.mark.slow
def test_learns_random_images():
    model = build(config(koleo_loss=None))
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=2e-3
    )
    torch.manual_seed(0)
    ramps = torch.linspace(-1, 1, 128)[:, None] * torch.randn(4, 3, 1, 96).cumsum(-1)
    inputs = [ramps, ramps.flip(3)] + [ramps[..., :64, :48]] * 4
    history = []
    for _ in range(200):
        losses = model.loss(inputs)
        optimizer.zero_grad()
        total(losses).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        model.after_step()
        history.append(float(losses['loss_mae'].detach()))
        assert 0 < float(losses['teacher_entropy']) < math.log(24)
    assert sum(history[-10:]) < 0.8 * sum(history[:10])


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (dict(head=None), 'give all three or set them to None'),
        (dict(contrast_loss=None), 'head, contrast_loss and centering belong together'),
        (dict(centering=None), 'head, contrast_loss and centering belong together'),
        (
            dict(backbone=dict(type='sapiens2_mm.Sapiens2', arch=ARCH, out_indices=0)),
            r'out_indices \(0,\) of the backbone must contain the last block',
        ),
    ],
)
def test_parts_that_do_not_fit(change, message):
    with pytest.raises(ValueError, match=message):
        MODELS.build(config(**change))


def test_wrong_views():
    model = build()
    images = views()
    for wrong in (images[:5], [images[0], images[-1], *images[2:]]):
        with pytest.raises(
            ValueError, match=r'2 global and 4 local .*got \[\(128, 96\)'
        ):
            model.loss(wrong)
