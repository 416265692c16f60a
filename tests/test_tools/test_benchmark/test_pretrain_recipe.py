"""The benchmark of recipes, and what it is about: targets that tell images apart."""

import importlib.util
import math

import pytest
import torch

pytest.importorskip('mmpretrain')

from sapiens2_mm.engine import launch
from sapiens2_mm.models import Sapiens2Pretrain
from sapiens2_mm.registry import MODELS


@pytest.fixture(scope='module')
def benchmark(repo_dir):
    path = repo_dir / 'tools' / 'benchmark' / 'pretrain_recipe.py'
    spec = importlib.util.spec_from_file_location('pretrain_recipe_benchmark', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    module.HOOKS.module_dict.pop('KoLeoRampHook')
    module.MODELS.module_dict.pop('TwoLayerHead')


def start(benchmark, arm: str) -> Sapiens2Pretrain:
    cfg = benchmark.arm_config('unused', benchmark.ARMS[arm], seed=0, num_steps=1)
    torch.manual_seed(0)
    model = MODELS.build(cfg.model)
    model.init_weights()
    return model


def information(benchmark, arm: str) -> tuple[float, float]:
    """KL to uniform and mutual information at the start, on 32 smooth images."""
    torch.manual_seed(1)
    colors = torch.randn(2, 32, 3, 4, 3)  # (views, images, RGB, rows, columns)
    views = [torch.nn.functional.interpolate(x, (128, 96)) for x in colors]
    return benchmark.measure(start(benchmark, arm), torch.stack(views))


def test_targets_of_the_recipe_tell_images_apart_from_the_start(benchmark):
    distance, shipped = information(benchmark, 'shipped')
    assert distance > 0.5 and shipped > 0.5
    for arm in ('former', 'former, unit prototypes', 'former, layer scale 1'):
        assert information(benchmark, arm)[1] < 0.05, arm


class Fixed(torch.nn.Module):
    """A teacher that answers image n with prototype n % 2 of 4, almost surely."""

    def forward(self, images):
        index = torch.arange(len(images)) % 2
        return 100.0 * torch.nn.functional.one_hot(index, 4)


def test_measures_by_the_formulas(benchmark):
    model = start(benchmark, 'shipped')
    model.teacher = Fixed()
    model.centering = MODELS.build(
        dict(type='sapiens2_mm.EMACentering', num_prototypes=4)
    )
    distance, information = benchmark.measure(model, torch.zeros(2, 6, 1))
    assert distance == pytest.approx(math.log(4))
    assert information == pytest.approx(math.log(2))
    assert model.training and model.centering.pending.eq(0).all()


def test_every_arm_changes_what_it_names(benchmark):
    configs = {
        name: benchmark.arm_config('unused', change, seed=0, num_steps=1)
        for name, change in benchmark.ARMS.items()
    }
    texts = {cfg.pretty_text for cfg in configs.values()}
    assert len(texts) == len(benchmark.ARMS)
    head = start(benchmark, 'shipped, head of two layers').head
    assert [type(layer).__name__ for layer in head.mlp] == ['Linear', 'GELU', 'Linear']
    deep = start(benchmark, 'shipped, 40 blocks')
    std = deep.backbone.blocks[20].attn.wq.weight.detach().std()
    assert float(std) == pytest.approx(0.098, abs=0.005)


@pytest.mark.slow
def test_prints_a_row_per_arm_seed_and_step(benchmark, data_dir, monkeypatch, capsys):
    arm = 'former, KoLeo from 0 in 300 steps'
    root = str(data_dir / 'synthetic_humans')
    small = {'train_dataloader.batch_size': 2, 'train_dataloader.num_workers': 0}
    small['train_dataloader.persistent_workers'] = False
    load = launch.load_config
    monkeypatch.setattr(launch, 'load_config', lambda path: load(path, small))
    benchmark.main([root, '--arms', arm, '--seeds', '3', '--steps', '1', '2'])
    rows = [line.split(' | ') for line in capsys.readouterr().out.splitlines()]
    rows = [row for row in rows if row[0] == f'| {arm}']
    assert [row[1:3] for row in rows] == [['3', '1'], ['3', '2']]
    assert float(rows[0][7]) == 0  # KoLeo begins without weight
    assert all(0 <= float(row[4]) < 0.05 for row in rows)
