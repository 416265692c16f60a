"""Gradient norm per loss against one backward pass per loss."""

import copy
from types import SimpleNamespace

import pytest
import torch
from mmengine.logging import MessageHub

pytest.importorskip('mmpretrain')

from tiny_pretrain import build, config, total, views

from sapiens2_mm.engine.hooks import LossGradientHook
from sapiens2_mm.engine.parallelize import recompute

NAMES = ('mae', 'contrast', 'koleo')


def tiny(mode: str = 'none'):
    cfg = config()
    cfg['backbone'] = dict(cfg['backbone'], drop_path_rate=0.2)
    model = build(cfg)
    recompute(model, mode)
    return model


def train(model, num_iters: int, interval: int, autocast: bool = False) -> dict:
    """Norms by iteration that the hook logs; half of each loss is trained on."""
    hub = MessageHub('gradients')
    runner = SimpleNamespace(model=model, message_hub=hub, iter=0)
    hook = LossGradientHook(interval)
    hook.before_train(runner)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(5)
    for runner.iter in range(num_iters):
        hook.before_train_iter(runner, runner.iter)
        with torch.autocast('cpu', torch.bfloat16, enabled=autocast):
            losses = model(views(), None, mode='loss')
        (total(losses) / 2).backward()  # as with two accumulated batches
        if runner.iter % 2:
            optimizer.step()
            optimizer.zero_grad()
            model.after_step()
    hook.after_train(runner)
    return {
        name: hub.get_scalar(f'train/backbone_grad_norm_{name}').data[0].tolist()
        for name in NAMES
        if f'train/backbone_grad_norm_{name}' in hub.log_scalars
    }


@pytest.mark.parametrize('autocast', [False, True])
@pytest.mark.parametrize('mode', ['none', 'selective', 'full'])
def test_norms_are_those_of_one_backward_pass_per_loss(autocast, mode):
    model = tiny(mode)
    start = copy.deepcopy(model)
    norms = train(model, 2, interval=2, autocast=autocast)
    for name in NAMES:
        alone = copy.deepcopy(start)
        torch.manual_seed(5)
        with torch.autocast('cpu', torch.bfloat16, enabled=autocast):
            loss = alone(views(), None, mode='loss')[f'loss_{name}']
        loss.backward()
        grads = [p.grad.flatten() for p in alone.backbone.parameters()]
        expected = float(torch.cat(grads).norm())
        assert norms[name] == [pytest.approx(expected, rel=1e-5)], name
        assert expected > 0


def test_measures_every_nth_iteration_and_changes_nothing():
    measured, plain = tiny('full'), tiny('full')
    norms = train(measured, 5, interval=2)
    assert train(plain, 5, interval=0) == {}
    assert [len(norms[name]) for name in NAMES] == [3, 3, 3]  # iterations 0, 2, 4
    for name, value in plain.state_dict().items():
        assert torch.equal(measured.state_dict()[name], value), name
    assert not measured._forward_hooks


def test_a_loss_without_influence_has_no_norm():
    model = tiny()
    model.contrast_loss.loss_weight = 0.0
    norms = train(model, 1, interval=1)
    assert norms['contrast'] == [0.0] and norms['mae'][0] > 0
