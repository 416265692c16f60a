"""mmengine's counter of parameters and FLOPs, and the hosts' tools over it."""

import runpy
import sys
from pathlib import Path

import pytest
import torch
from mmengine.analysis import get_model_complexity_info
from tiny_models import DEEP_ARCH, SIZE, backbone_cfg, build, model_cfg
from torch import nn

from sapiens2_mm.registry import MODELS

__all__ = ['build']  # a fixture
TASKS = ('pose', 'seg', 'normal', 'pointmap', 'albedo', 'depth', 'matting')


@pytest.mark.parametrize('task', TASKS)
def test_every_task(task, build):
    model = build(task)
    found = get_model_complexity_info(model, (3, *SIZE), show_table=False)
    assert found['params'] == sum(p.numel() for p in model.parameters())
    backbone = get_model_complexity_info(model.backbone, (3, *SIZE))
    assert found['flops'] > backbone['flops'] > 0
    twice = get_model_complexity_info(model, inputs=torch.randn(2, 3, *SIZE))
    assert twice['flops'] == 2 * found['flops']


def test_attention_counts():
    """By hand: one multiply-add per weight and token, and the products of tokens."""
    model = MODELS.build(backbone_cfg(arch=DEEP_ARCH)).eval()
    patches = SIZE[0] * SIZE[1] // 16**2
    tokens = patches + model.num_prefix_tokens
    expected = patches * model.patch_embed.projection.weight.numel()
    for block in model.blocks:
        weights = sum(m.weight.numel() for m in block.modules() if type(m) is nn.Linear)
        expected += tokens * weights + 2 * tokens**2 * model.embed_dims
    assert get_model_complexity_info(model, (3, *SIZE))['flops'] == expected


def test_pretraining():
    pytest.importorskip('mmpretrain')
    import tiny_pretrain

    model = tiny_pretrain.build().eval()
    assert get_model_complexity_info(model, (3, *SIZE))['flops'] > 0


@pytest.mark.parametrize(
    'task, host, options',
    [
        ('pose', 'mmpose', ['--batch-size', '2', '--input-shape']),
        ('seg', 'mmseg', ['--shape']),
    ],
)
def test_tools_of_the_hosts(task, host, options, tmp_path, monkeypatch, capsys):
    folder = Path(pytest.importorskip(host).__file__).parent
    tool = folder / '.mim/tools/analysis_tools/get_flops.py'
    if not tool.is_file():
        pytest.skip(f'this {host} was installed without its tools')
    model_cfg(task).dump(tmp_path / 'config.py')
    sizes = map(str, SIZE)
    arguments = [str(tool), str(tmp_path / 'config.py'), *options, *sizes]
    monkeypatch.setattr(sys, 'argv', arguments)
    runpy.run_path(str(tool), run_name='__main__')
    assert 'Flops: ' in capsys.readouterr().out
