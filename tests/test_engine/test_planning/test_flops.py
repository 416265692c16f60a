"""FLOPs of a step: by hand, and by torch's counter over the real step."""

import pytest
import torch
from mmengine.config import Config
from tiny_models import DEEP_ARCH, SIZE, model_cfg
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from sapiens2_mm.engine.planning.dry_run import build_model, loss_of, views_of
from sapiens2_mm.engine.planning.flops import (
    count_train_flops,
    listed_peak,
    measure_matmul,
)

DEEPER = dict(DEEP_ARCH, num_layers=20)


def test_a_grouped_block_counts_by_hand():
    """Three times the forward pass: two per weight and token, four per pair."""
    flops = [
        count_train_flops(model_cfg('normal', arch=arch))
        for arch in (DEEP_ARCH, DEEPER)
    ]
    tokens = SIZE[0] * SIZE[1] // 256 + 9
    width, kv, hidden = 32, 16, 64
    weights = 2 * width * width + 2 * width * kv + 3 * width * hidden
    forward = 2 * tokens * weights + 4 * tokens**2 * width
    assert flops[1] - flops[0] == 3 * forward


def pretrain_cfg(kind):
    pytest.importorskip('mmpretrain')
    import tiny_pretrain

    views = [dict(num_views=2, size=(128, 96)), dict(num_views=4, size=(64, 48))]
    model = tiny_pretrain.config()
    if kind == '4k':
        views = [dict(num_views=2, size=(512, 384)), dict(num_views=1, size=(256, 192))]
        model = tiny_pretrain.config_4k()
    elif kind == 'reconstruction':
        model = tiny_pretrain.mae_only()
    pipeline = [dict(type='sapiens2_mm.MultiViewCrop', views=views)]
    loader = dict(dataset=dict(dataset=dict(pipeline=pipeline)))
    return Config(dict(model=model, train_dataloader=loader))


@pytest.mark.parametrize('kind', ['joint', 'reconstruction', '4k', 'frozen'])
def test_equals_the_count_of_the_real_step(kind):
    if kind == 'frozen':
        cfg = model_cfg('pointmap', frozen_stages=1)
    else:
        cfg = pretrain_cfg(kind)
    torch.manual_seed(0)
    model = build_model(cfg.model)
    inputs = [torch.randn(1, 3, *size) for n, size in views_of(cfg) for _ in range(n)]
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        loss_of(model, inputs if len(inputs) > 1 else inputs[0]).backward()
    assert count_train_flops(cfg) == counter.get_total_flops() > 0


def test_no_size_of_images():
    with pytest.raises(ValueError, match=r'no backbone\.img_size'):
        count_train_flops(Config(dict(model=dict(type='sapiens2_mm.Sapiens2'))))


@pytest.mark.parametrize(
    'name, bf16, fp32',
    [
        ('NVIDIA H100 80GB HBM3', 989, 67),
        ('NVIDIA H100 PCIe', 756, 51),
        ('NVIDIA A100-SXM4-80GB', 312, 19.5),
        ('NVIDIA A10G', 125, 31.2),
        ('NVIDIA L40S', 362, 91.6),
        ('NVIDIA L4', 121, 30.3),
        ('Tesla T4', 65, 8.1),
        ('NVIDIA GeForce GTX 1080', None, None),
    ],
)
def test_peaks_by_name(name, bf16, fp32):
    found = [listed_peak(name, dtype) for dtype in (torch.bfloat16, torch.float32)]
    assert found == [peak and pytest.approx(1e12 * peak) for peak in (bf16, fp32)]


def test_the_peak_follows_the_precision_of_products():
    name = 'NVIDIA A100 80GB PCIe'
    assert listed_peak(name, torch.float32, tf32=True) == 156e12
    assert listed_peak(name, torch.float16, tf32=True) == 312e12


def test_the_cpu_is_measured():
    peak = measure_matmul(torch.float32, torch.get_num_threads(), side=256)
    assert 1e8 < peak < 1e14
