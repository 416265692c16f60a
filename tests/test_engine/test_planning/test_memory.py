"""Memory of a step: by hand, and the parts of one of many GPUs."""

import runpy
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.config import Config
from torch import nn

from sapiens2_mm.engine.planning import memory
from sapiens2_mm.engine.planning.dry_run import dry_run
from sapiens2_mm.engine.planning.memory import plan_memory, state_bytes, trace_step
from sapiens2_mm.engine.planning.plans import Planner, best

VIEWS = [dict(num_views=2, size=(128, 96)), dict(num_views=4, size=(64, 48))]


@pytest.fixture(scope='module')
def cfg():
    pytest.importorskip('mmpretrain')
    import tiny_pretrain

    dataset = dict(pipeline=[dict(type='sapiens2_mm.MultiViewCrop', views=VIEWS)])
    loader = dict(batch_size=4, num_workers=2, prefetch_factor=3, dataset=dataset)
    return Config(
        dict(
            model=tiny_pretrain.config(),
            train_dataloader=loader,
            train_cfg=dict(max_iters=100),
            optim_wrapper=dict(
                type='sapiens2_mm.AutocastOptimWrapper',
                optimizer=dict(type='AdamW', lr=1e-3),
            ),
        )
    )


@pytest.fixture(scope='module')
def planner(cfg):
    return Planner(cfg)


def test_what_is_alive_by_hand():
    """x (64 x 256) through two layers: the results live until they are used."""
    with dry_run():
        model = nn.Sequential(nn.Linear(256, 512, bias=False), nn.Linear(512, 8, False))
        x = torch.empty(64, 256)
        with memory._Watch(model, x) as watch:
            model(x).sum().backward()
    activations, copies, gradients = np.array(watch.trace).T
    hidden, out = 4 * 64 * 512, 4 * 64 * 8
    loss = 4
    assert hidden + out + loss in activations  # before the backward pass
    assert activations[-1] <= 2 * loss
    assert not copies.any()
    assert gradients[-1] == 4 * (256 * 512 + 512 * 8) == gradients.max()


def test_a_cast_parameter_is_a_copy_and_no_activation():
    with dry_run():
        model, x = nn.Linear(256, 512, bias=False), torch.empty(64, 256)
        with memory._Watch(model, x) as watch, torch.autocast('cpu', torch.bfloat16):
            loss = model(x).sum()
        del loss
    assert np.array(watch.trace)[:, 1].max() == 2 * (256 * 512 + 64 * 256)


@pytest.mark.parametrize(
    'kind, size',
    [('AdamW', 8), ('SGD', 0), (dict(type='SGD', momentum=0.9), 4)],
)
def test_state_of_an_optimizer(kind, size):
    kind = kind if isinstance(kind, dict) else dict(type=kind)
    assert state_bytes(dict(kind, lr=0.1)) == size


def test_parts_of_a_gpu(cfg, planner):
    whole, parts = (planner.memory(16, size, 'none', 4) for size in (1, 16))
    sizes = planner._trace('none', sharded=True).sizes
    with dry_run():
        model = memory.build_model(cfg.model)
    assert sizes.student + sizes.teacher == sum(p.numel() for p in model.parameters())
    assert sizes.trained == sizes.student
    assert (whole.weights, whole.optimizer) == (4 * sizes.student, 8 * sizes.student)
    assert whole.teacher == 4 * sizes.teacher > 0
    for name in ('weights', 'optimizer', 'teacher'):
        assert getattr(parts, name) == getattr(whole, name) // 16
    assert whole.copies >= 4 * sizes.trained  # buckets
    assert planner.memory(1, 1, 'none', 4).copies == whole.copies - 4 * sizes.trained
    pixels = 3 * (2 * 128 * 96 + 4 * 64 * 48)
    assert whole.batch == 4 * pixels * 5  # one byte, and float32
    assert memory.loader_memory(cfg, 4) == 4 * pixels * 6  # two workers, three each
    assert whole.total == sum(vars(whole).values())


def test_what_is_computed_anew_is_not_kept(planner):
    kept = [planner.memory(8, 8, mode, 64) for mode in ('none', 'selective', 'full')]
    activations = [each.activations for each in kept]
    assert activations == sorted(activations, reverse=True)
    assert activations[2] < 0.9 * activations[0]
    twice = planner.memory(8, 8, 'none', 128)
    assert twice.activations == pytest.approx(2 * activations[0])


def test_frozen_layers_have_no_gradient_and_no_state():
    from tiny_models import model_cfg

    cfg = model_cfg('normal', frozen_stages=2)
    cfg.optim_wrapper = dict(optimizer=dict(type='AdamW', lr=1e-3))
    trace = trace_step(cfg, 'none')
    found = plan_memory(cfg, trace, 2, 1)
    assert 0 < trace.sizes.trained < trace.sizes.student
    assert found.optimizer == 8 * trace.sizes.trained
    assert trace.gradients[-1] == 4 * trace.sizes.trained


def test_the_largest_batch_fits_and_one_more_does_not(planner):
    limit = planner.memory(8, 8, 'full', 40).total
    plans = {(p.sharding, p.mode): p for p in planner.plans(8, limit, batch_size=32)}
    plan = plans['fsdp2', 'full']
    assert plan.largest_batch == 40 and plan.fits
    assert planner.memory(8, 8, 'full', 41).total > limit
    assert best(list(plans.values())).fits
    none = planner.plans(8, limit=1000, batch_size=32)
    assert best(none) is None and none[0].memory is None


def test_the_tool_names_the_options_of_a_run(
    cfg, tmp_path, repo_dir, monkeypatch, capsys
):
    cfg.dump(tmp_path / 'config.py')
    arguments = ['plan.py', str(tmp_path / 'config.py'), '--gpus', '16']
    arguments += ['--gpu-memory', '0.02GB', '--picture', str(tmp_path / 'plan.png')]
    monkeypatch.setattr(sys, 'argv', arguments)
    runpy.run_path(str(repo_dir / 'tools' / 'plan.py'), run_name='__main__')
    text = capsys.readouterr().out
    assert '| fsdp2/8 | full |' in text and 'TFLOP per image' in text
    assert '--cfg-options recompute=' in text
    assert (tmp_path / 'plan.png').stat().st_size > 10_000


def test_sizes_of_memory_have_a_unit(repo_dir):
    tool = SimpleNamespace(**runpy.run_path(str(repo_dir / 'tools' / 'plan.py')))
    assert tool.parse_memory('80GB') == 80e9
    assert tool.parse_memory('141 GiB') == 141 * 2**30
    with pytest.raises(Exception, match='expected 80GB'):
        tool.parse_memory('80')
