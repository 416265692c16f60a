"""Rotary tables: values, precision that survives casts, cache, augmentation."""

import copy
import math

import pytest
import torch
from mmengine.model import ExponentialMovingAverage
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from sapiens2_mm.models.layers import RotaryEmbedding, rotate

# The released table for a head size of 64.
PERIODS_64 = [
    1, 1.3359375, 1.78125, 2.375, 3.15625, 4.21875, 5.625, 7.5,
    10, 13.3125, 17.75, 23.75, 31.625, 42.25, 56.25, 75,
]  # fmt: skip


def same_table(a, b):
    return all(
        torch.equal(x, y) and x.dtype == y.dtype for x, y in zip(a, b, strict=True)
    )


def test_bf16_periods_are_the_released_ones():
    periods = RotaryEmbedding(64).periods
    assert periods.dtype == torch.bfloat16
    assert periods.tolist() == PERIODS_64


@pytest.mark.parametrize('head_dims', [16, 64, 76, 80])
def test_fp32_periods_follow_the_formula(head_dims):
    periods = RotaryEmbedding(head_dims, dtype='fp32').periods
    expected = [100 ** (4 * i / head_dims) for i in range(head_dims // 4)]
    torch.testing.assert_close(periods, torch.tensor(expected))


def test_fp32_table_by_hand():
    rope = RotaryEmbedding(8, num_prefix_tokens=1, dtype='fp32')
    cos, sin = rope((1, 2))
    assert cos.shape == sin.shape == (1, 3, 8)
    cos, sin = cos[0], sin[0]
    # One row: c_h = 0. Two columns: c_w = -0.5, 0.5. Periods 1 and 10.
    angles = torch.tensor([[0, 0, -0.5, -0.05], [0, 0, 0.5, 0.05]]) * 2 * math.pi
    torch.testing.assert_close(cos[1:, :4], angles.cos())
    torch.testing.assert_close(cos[1:, 4:], angles.cos())
    torch.testing.assert_close(sin[1:, 4:], angles.sin())
    torch.testing.assert_close(sin[1:, :4], -angles.sin())
    assert cos[0].eq(1).all() and sin[0].eq(0).all()


def test_rows_vary_slowest():
    cos, _ = RotaryEmbedding(8, dtype='fp32')((3, 2))
    h_part, w_part = cos[0, :, :2].view(3, 2, 2), cos[0, :, 2:4].view(3, 2, 2)
    assert torch.equal(h_part[:, 0], h_part[:, 1])
    assert torch.equal(w_part[0], w_part[2])


def test_rotate_pairs_the_two_halves():
    angle = torch.tensor([0.3, 1.1])
    cos = angle.cos().repeat(2).view(1, 4)
    sin = torch.cat((-angle.sin(), angle.sin())).view(1, 4)
    x = torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 1, 1, 4)
    c, s = angle.cos(), angle.sin()
    expected = torch.stack(
        (
            1 * c[0] - 3 * s[0],
            2 * c[1] - 4 * s[1],
            3 * c[0] + 1 * s[0],
            4 * c[1] + 2 * s[1],
        )
    )
    torch.testing.assert_close(rotate(x, (cos, sin)).flatten(), expected)
    assert x.flatten().tolist() == [1, 2, 3, 4]


def test_rotation_keeps_length_and_has_its_gradient():
    x = torch.randn(2, 3, 7, 16, dtype=torch.double, requires_grad=True)
    table = tuple(t.double() for t in RotaryEmbedding(16, 1, dtype='fp32')((3, 2)))
    torch.testing.assert_close(
        rotate(x, table).norm(dim=-1), x.norm(dim=-1), rtol=1e-5, atol=1e-6
    )
    assert torch.autograd.gradcheck(lambda y: rotate(y, table), (x,))


def test_bf16_table_rounds_queries_prefix_included():
    x = torch.randn(1, 7, 2, 16).transpose(1, 2)
    y = rotate(x, RotaryEmbedding(16, num_prefix_tokens=1)((3, 2)))
    assert y.dtype == torch.float32
    assert y.is_contiguous()
    assert torch.equal(y, y.bfloat16().float())
    assert torch.equal(y[:, :, 0], x[:, :, 0].bfloat16().float())


@pytest.mark.parametrize('dtype', ['bf16', 'fp32'])
@pytest.mark.parametrize(
    'cast',
    [
        lambda m: m.float(),
        lambda m: m.bfloat16(),
        lambda m: m.half(),
        lambda m: m.double(),
        lambda m: m.to(torch.float16),
        lambda m: m.to('cpu', torch.float64),
        lambda m: m.type(torch.float32),
        lambda m: copy.deepcopy(m).float(),
        lambda m: m.bfloat16().float(),
    ],
)
def test_casting_never_changes_the_table(cast, dtype):
    module = nn.Sequential(RotaryEmbedding(64, dtype=dtype), nn.Linear(2, 2))
    periods, table = module[0].periods.clone(), module[0]((5, 4))
    module = cast(module)
    assert module[0].periods.dtype == periods.dtype
    assert torch.equal(module[0].periods, periods)
    assert same_table(module[0]((5, 4)), table)


def test_buffer_cast_from_outside_keeps_the_table():
    rope = RotaryEmbedding(64)
    table = rope((5, 4))
    rope.periods = rope.periods.float()  # as some sharding wrappers do
    assert same_table(rope((5, 4)), table)


def test_save_and_load_keep_the_table(tmp_path):
    rope = RotaryEmbedding(16)
    rope.periods.copy_(torch.tensor([1.0, 3.0, 10.0, 30.0]))
    table = rope((3, 2))
    torch.save(rope.state_dict(), tmp_path / 'rope.pth')
    for state in (
        torch.load(tmp_path / 'rope.pth'),
        {k: v.float() for k, v in rope.state_dict().items()},
    ):
        other = RotaryEmbedding(16)
        other((3, 2))
        other.load_state_dict(state)
        assert same_table(other((3, 2)), table)


@pytest.mark.parametrize('dtype', ['bf16', 'fp32'])
@pytest.mark.parametrize('head_dims', [64, 76, 80])
def test_averaging_keeps_the_table(dtype, head_dims):
    rope = RotaryEmbedding(head_dims, dtype=dtype)
    table = rope((3, 2))
    averages = [
        ExponentialMovingAverage(rope, momentum=0.0002, update_buffers=True),
        ExponentialMovingAverage(rope, momentum=0.008),
        AveragedModel(rope, use_buffers=True),
        AveragedModel(rope, multi_avg_fn=get_ema_multi_avg_fn(0.992), use_buffers=True),
    ]
    for average in averages:
        for _ in range(5):
            average.update_parameters(rope)
        assert same_table(average.module((3, 2)), table)


def test_table_is_cached_per_grid_and_notices_new_periods():
    rope = RotaryEmbedding(16)
    first = rope((3, 2))
    assert rope((3, 2))[0] is first[0]
    assert rope((2, 3))[0] is not first[0]
    rope.load_state_dict({'periods': torch.tensor([1.0, 2.0, 4.0, 8.0])})
    assert not torch.equal(rope((3, 2))[1], first[1])
    for n in range(1, 40):
        rope((n, n))
    assert len(rope._tables) == 8
    assert copy.deepcopy(rope)._tables == {}
    assert list(rope.state_dict()) == ['periods']


def test_table_made_in_inference_mode_serves_training():
    rope = RotaryEmbedding(16)
    with torch.inference_mode():
        rope((3, 2))
    x = torch.randn(1, 1, 6, 16, requires_grad=True)
    rotate(x, rope((3, 2))).sum().backward()
    assert x.grad.isfinite().all()


def test_meta_build_gets_its_periods_on_the_device():
    with torch.device('meta'):
        rope = RotaryEmbedding(64)
    assert rope.periods.is_meta
    rope.to_empty(device='cpu')
    assert rope.periods.tolist() == PERIODS_64


@pytest.mark.parametrize('dtype', ['bf16', 'fp32'])
def test_augmentation_only_while_training(dtype):
    plain = RotaryEmbedding(16, dtype=dtype)((3, 2))
    rope = RotaryEmbedding(16, dtype=dtype, shift=0.1, jitter=2.0, rescale=2.0)
    rope.train()
    assert not torch.equal(rope((3, 2))[0], rope((3, 2))[0])
    rope.eval()
    assert same_table(rope((3, 2)), plain) and same_table(rope((3, 2)), rope((3, 2)))


def test_augmentation_ranges():
    torch.manual_seed(0)
    corner = torch.tensor([[0.5, -0.5]])

    def draw(**options):
        rope = RotaryEmbedding(16, dtype='fp32', **options)
        return torch.cat([rope._augment(corner) for _ in range(2000)])

    shift = draw(shift=0.1) - corner
    assert 0.09 < shift.abs().max() <= 0.1
    assert shift[:, 0].sub(shift[:, 1]).abs().max() > 0.1
    for options, one_factor in (({'jitter': 2.0}, False), ({'rescale': 4.0}, True)):
        limit = next(iter(options.values()))
        factor = draw(**options) / corner
        assert 1 / limit <= factor.min() < 1.1 / limit
        assert 0.9 * limit < factor.max() <= limit
        assert abs(factor.log().mean()) < 0.05
        assert torch.allclose(factor[:, 0], factor[:, 1]) == one_factor


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (dict(dtype='fp16'), r"one of \['bf16', 'fp32'\] and .* got 'fp16'"),
        (dict(head_dims=6), "head_dims a multiple of 4, got 'bf16' and 6"),
        (dict(head_dims=0), "head_dims a multiple of 4, got 'bf16' and 0"),
        (dict(shift=-0.1), 'shift must be >= 0, got -0.1'),
        (dict(jitter=0.5), 'jitter must be >= 1'),
        (dict(rescale=0), 'rescale must be >= 1'),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        RotaryEmbedding(**{'head_dims': 16, **options})
