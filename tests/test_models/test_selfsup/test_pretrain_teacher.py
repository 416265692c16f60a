import copy

import pytest
import torch
from tiny_pretrain import ARCH, build, config, mae_only, total, views

from sapiens2_mm.models.selfsup import export_backbone
from sapiens2_mm.registry import MODELS


def test_no_gradient_reaches_the_teacher():
    model = build()
    losses = model.loss(views())
    total(losses).backward()
    assert all(param.grad is None for param in model.teacher.parameters())
    assert not any(name.startswith('teacher') for name, p in model.named_parameters()
                   if p.requires_grad)  # fmt: skip


def test_teacher_sees_whole_global_views():
    model = build()
    inputs = views()
    seen = []
    model.teacher.register_forward_hook(lambda module, args, out: seen.append(args[0]))
    model.loss(inputs)
    assert torch.equal(seen[0], torch.cat(inputs[:2]))
    logits = model.teacher(inputs[0])
    expected = model.head(model.backbone(inputs[0])[-1][:, 0])
    torch.testing.assert_close(logits, expected)


def test_after_step_moves_teacher_center_and_iteration():
    model = build()
    model.loss(views())
    teacher = copy.deepcopy(model.teacher.state_dict())
    with torch.no_grad():
        for param in model.backbone.parameters():
            param.add_(0.5)
    model.after_step()
    name = 'blocks.1.ffn.w3.weight'
    torch.testing.assert_close(
        model.teacher.backbone.state_dict()[name],
        0.992 * teacher[f'backbone.{name}'] + 0.008 * model.backbone.state_dict()[name],
        rtol=0,
        atol=1e-7,
    )
    assert int(model.iteration) == 1
    assert float(model.centering.center.abs().sum()) > 0


def test_teacher_momentum_follows_the_iteration():
    model = build(config(teacher_momentum=0.9, teacher_momentum_iters=2))
    moved = []
    for _ in range(3):
        with torch.no_grad():
            model.head.prototypes.weight.copy_(model.teacher.head.prototypes.weight + 1)
        before = model.teacher.head.prototypes.weight.clone()
        model.after_step()
        moved.append(float((model.teacher.head.prototypes.weight - before).mean()))
    assert moved == pytest.approx([0.1, 0.05, 0], abs=1e-6)


def test_temperature_follows_the_iteration():
    model = build()
    seen = []
    forward = model.centering.forward
    model.centering.forward = lambda x, t: seen.append(t) or forward(x, t)
    for iteration in (0, 500, 1000, 5000):
        model.iteration.fill_(iteration)
        model.loss(views())
    assert seen == pytest.approx([0.065, 0.0675, 0.07, 0.07])


def test_state_dict_restores_everything():
    model = build()
    model.loss(views())
    with torch.no_grad():
        model.head.prototypes.weight.mul_(2)
    model.after_step()
    other = build()
    other.load_state_dict(model.state_dict())
    losses, again = model.loss(views()), other.loss(views())
    for name, value in losses.items():
        assert torch.equal(value, again[name]), name


def test_weights_without_a_teacher_start_one():
    model = build()
    with torch.no_grad():
        model.backbone.cls_token.add_(1)
    weights = {
        key: value
        for key, value in model.state_dict().items()
        if not key.startswith('teacher.')
    }
    other = build()
    other.load_state_dict(weights)
    assert torch.equal(other.teacher.backbone.cls_token, model.backbone.cls_token)


@pytest.mark.parametrize('which', ['student', 'teacher'])
def test_export_fits_the_plain_backbone(which):
    model = build()
    with torch.no_grad():
        for param in model.teacher.parameters():
            param.mul_(1.5)
    weights = export_backbone(model.state_dict(), which)
    plain = MODELS.build(
        dict(type='sapiens2_mm.Sapiens2', arch=ARCH, img_size=(128, 96))
    )
    plain.load_state_dict(weights)  # strict
    source = model.backbone if which == 'student' else model.teacher.backbone
    assert torch.equal(plain.cls_token, source.cls_token)
    weights['cls_token'].zero_()  # a copy
    assert float(source.cls_token.abs().sum()) > 0


def test_export_errors():
    model = build(mae_only())
    with pytest.raises(ValueError, match=r"no key starts with 'x\.backbone\.'"):
        export_backbone(model.state_dict(), 'x')
    with pytest.raises(ValueError, match=r"no key starts with 'teacher\.backbone\.'"):
        export_backbone(model.state_dict(), 'teacher')


@pytest.mark.parametrize('frozen_stages', [0, 1, 2])
def test_frozen_stages_stay_as_they_are(frozen_stages):
    """In student and teacher, with weight decay; 0 freezes nothing, 2 everything."""
    cfg = config()
    cfg['backbone'] = dict(cfg['backbone'], frozen_stages=frozen_stages)
    model = build(cfg)
    before = copy.deepcopy(model.backbone.state_dict())
    frozen = {
        name
        for name in before
        if frozen_stages == 2
        or (frozen_stages and not name.startswith(('blocks.1.', 'ln1.')))
    }
    trained = [param for param in model.parameters() if param.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2, weight_decay=0.1)
    for _ in range(3):
        model.train()
        assert model.backbone.blocks[0].training == (frozen_stages == 0)
        total(model.loss(views())).backward()
        optimizer.step()
        model.after_step()
    for encoder in (model.backbone, model.teacher.backbone):
        for name, value in encoder.state_dict().items():
            if name != 'rope_embed.periods':
                assert torch.equal(value, before[name]) == (name in frozen), name
