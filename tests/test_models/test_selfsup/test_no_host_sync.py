"""A step does not wait for its device: checked on one that has no values."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from mmpretrain.structures import DataSample
from tiny_pretrain import config, config_4k, mae_only
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from sapiens2_mm.models.losses.koleo import koleo
from sapiens2_mm.registry import MODELS

aten = torch.ops.aten
READS = {
    aten._local_scalar_dense.default,
    aten.equal.default,
    aten.is_nonzero.default,
    aten.masked_select.default,
    aten.nonzero.default,
}
FROM_NUMBERS = {torch.tensor, torch.as_tensor, Tensor.new_tensor}


class NoWaiting(TorchDispatchMode):
    """Refuses reading values, shapes that hang on values, and copies that block."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        indices = args[1] if func.name().startswith('aten::index') else ()
        indices = indices if isinstance(indices, list | tuple) else ()
        by_mask = any(isinstance(i, Tensor) and i.dtype == torch.bool for i in indices)
        assert func not in READS and not by_mask, f'{func} waits for the device'
        out = func(*args, **kwargs)
        if func is aten._to_copy.default and not kwargs.get('non_blocking'):
            assert out.device == args[0].device, f'a copy to {out.device} blocks'
        if func is aten.copy_.default and not args[2:]:
            assert out.device == args[1].device, f'a copy to {out.device} blocks'
        return out


class NoNumbers(TorchFunctionMode):
    """Refuses numbers of the host that are copied to the device."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        assert func not in FROM_NUMBERS or out.device.type == 'cpu', f'{func} blocks'
        return out


@contextmanager
def no_waiting() -> Iterator[None]:
    with NoNumbers(), NoWaiting():
        yield


@pytest.fixture(autouse=True)
def gpu() -> Iterator[torch.device]:
    """A GPU that computes shapes alone; it need not be there. It has no backward."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        yield torch.device('cuda')


def batch_on(
    device: torch.device, size: tuple[int, int], num_locals: int, batch_size: int = 3
) -> tuple[list[Tensor], list[DataSample]]:
    """Views on a device, and samples as the loader gives them."""
    globals_ = torch.empty(batch_size, 3, *size, device=device)
    locals_ = torch.empty(batch_size, 3, *(side // 2 for side in size), device=device)
    samples = []
    for _ in range(batch_size):
        sample = DataSample()
        sample.set_field(np.stack([np.arange(12)] * 2), 'ids_keep')
        samples.append(sample)
    return [globals_] * 2 + [locals_] * num_locals, samples


@pytest.mark.parametrize(
    'cfg',
    [
        config(),
        config(teacher_momentum_iters=10, frozen_prototype_iters=1),
        config(centering=dict(type='sapiens2_mm.SinkhornCentering')),
        {**mae_only(), 'num_local_views': 0},
        config_4k(),
    ],
    ids=['joint', 'schedules', 'sinkhorn', 'mae only', '4k'],
)
def test_a_step_does_not_wait(cfg, gpu):
    with gpu:
        model = MODELS.build(cfg).train()
    model.restart()
    size = (512, 384) if model.backbone.use_tokenizer else (128, 96)
    inputs, samples = batch_on(gpu, size, model.num_local_views)
    model.loss(inputs, samples)  # fills the tables of positions
    for _ in range(2):
        with no_waiting():
            losses = model.loss(inputs, samples)
            model.after_step()
    assert losses['loss_mae'].device.type == 'cuda'
    assert model.iteration.known_to_host[1] == 2


def test_koleo_over_several_processes_does_not_wait(gpu):
    with no_waiting():
        koleo(torch.empty(3, 8, device=gpu), torch.empty(6, 8, device=gpu), 3)


@pytest.mark.parametrize(
    'wait',
    [
        lambda x: x.sum().item(),
        lambda x: bool((x > 0).all()),
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
        lambda x: x.cpu(),
        lambda x: x.copy_(torch.ones(2)),
        lambda x: x.new_tensor(3.0),
        lambda x: torch.tensor(3.0, device=x.device),
    ],
    ids=['item', 'bool', 'mask', 'nonzero', 'cpu', 'copy', 'new_tensor', 'tensor'],
)
def test_waiting_is_noticed(wait, gpu):
    x = torch.ones(2, device=gpu)
    with pytest.raises(AssertionError, match=r'waits|blocks'), no_waiting():
        wait(x)
