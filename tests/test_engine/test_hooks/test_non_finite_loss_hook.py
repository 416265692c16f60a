from pathlib import Path

import pytest
import torch
from broken_images import BreakImages
from mmengine.model import BaseDataPreprocessor
from mmengine.optim import AmpOptimWrapper, OptimWrapper
from processes import run_processes
from toy_run import ToyModel, toy_runner

from sapiens2_mm.engine.hooks import NonFiniteLossHook
from sapiens2_mm.registry import OPTIM_WRAPPERS


class StackedToy(ToyModel):
    """Gives the images as one tensor, which a test can fill."""

    def __init__(self) -> None:
        super().__init__()
        self.data_preprocessor = BaseDataPreprocessor()
        self.register_buffer('mean_image', torch.zeros(()))

    def forward(self, inputs, data_samples=None, mode='tensor'):
        if self.training:  # as batch norm does
            self.mean_image += torch.stack(list(inputs)).mean()
        return super().forward(inputs, data_samples, mode)


def run(work_dir, *broken, patience=2, iterations=5, wrapper=None, **options):
    """The runner of a run that saves every iteration."""
    torch.manual_seed(0)
    hook = dict(type='sapiens2_mm.NonFiniteLossHook', patience=patience)
    runner = toy_runner(
        work_dir,
        StackedToy(),
        iterations,
        extra_hooks=dict(finite_loss=hook),
        val_interval=100,
        **options,
    )
    runner.optim_wrapper.update(wrapper or {})
    runner.register_hook(BreakImages(*broken))
    return runner


def saved(runner, iteration):
    """What is saved of the model itself; EMAHook swaps its own weights with these."""
    path = Path(runner.work_dir) / f'iter_{iteration}.pth'
    checkpoint = torch.load(path, weights_only=False)
    assert all(v.isfinite().all() for v in checkpoint['state_dict'].values())
    own = checkpoint['ema_state_dict']
    assert all(v.isfinite().all() for v in own.values())
    moments = checkpoint['optimizer']['state'].values()
    assert all(state['exp_avg'].isfinite().all() for state in moments)
    return {k[7:]: v for k, v in own.items() if k.startswith('module.')}


def equal(one, other):
    return all(one[name].equal(other[name]) for name in one)


def test_one_broken_batch_is_skipped_and_reported(tmp_path, log):
    runner = run(tmp_path, 3)
    runner.logger.setLevel('WARNING')
    runner.logger.addHandler(log.handler)
    runner.train()
    assert 'iteration 3 is not finite: loss is nan on images without' in log.text
    before, skipped, after = (saved(runner, number) for number in (2, 3, 4))
    assert equal(before, skipped)  # the buffer too
    assert not equal(skipped, after)


def test_finite_losses_are_left_alone(tmp_path):
    with_hook = run(tmp_path / 'a')
    with_hook.train()
    without = run(tmp_path / 'b')
    without._hooks = [h for h in without.hooks if type(h) is not NonFiniteLossHook]
    without.train()
    assert equal(saved(with_hook, 5), saved(without, 5))


@pytest.mark.parametrize('patience', [1, 2])
def test_patience_counts_iterations_in_a_row(tmp_path, patience):
    runner = run(tmp_path, 1, 3, 4, patience=patience)
    last = 1 if patience == 1 else 4
    message = rf'iteration {last} is not finite: loss is nan .*{patience} such iter'
    with pytest.raises(FloatingPointError, match=message):
        runner.train()
    assert (tmp_path / 'iter_3.pth').exists() == (patience == 2)
    assert not (tmp_path / f'iter_{last}.pth').exists()
    if patience == 2:
        assert equal(saved(runner, 2), saved(runner, 3))


@pytest.mark.parametrize('broken', [3, 4])
def test_gradients_accumulated_with_it_are_dropped(tmp_path, broken):
    """A step follows every second iteration."""
    runner = run(tmp_path, broken, iterations=8, wrapper=dict(accumulative_counts=2))
    runner.train()
    two, four, six = (saved(runner, number) for number in (2, 4, 6))
    names = [name for name, _ in runner.model.named_parameters()]
    assert all(two[name].equal(four[name]) for name in names)
    assert any(not four[name].equal(six[name]) for name in names)


@OPTIM_WRAPPERS.register_module()
class ScalerOnCPU(AmpOptimWrapper):
    """Gradients scaled as for float16, which mmengine does on a GPU only."""

    def __init__(self, **kwargs):
        OptimWrapper.__init__(self, **kwargs)
        self.loss_scaler = torch.amp.GradScaler('cpu', init_scale=1024.0)
        self._scale_update_param = None

    optim_context = OptimWrapper.optim_context


@pytest.mark.parametrize('clip_grad', [None, dict(max_norm=1.0)])
def test_a_gradient_scaler_goes_on(tmp_path, clip_grad):
    wrapper = dict(type='sapiens2_mm.ScalerOnCPU', clip_grad=clip_grad)
    runner = run(tmp_path, 3, wrapper=wrapper)
    runner.train()
    two, three, four = (saved(runner, number) for number in (2, 3, 4))
    assert equal(two, three) and not equal(three, four)
    assert runner.optim_wrapper.loss_scaler.get_scale() == 512  # halved once


def _one_process(rank, folder):
    wrapper = dict(type='MMDistributedDataParallel', device_ids=None)
    broken = (3, 4) if rank == 1 else ()
    runner = run(
        folder / 'work',
        *broken,
        launcher='pytorch',
        cfg=dict(model_wrapper_cfg=wrapper),
    )
    try:
        runner.train()
    except FloatingPointError as error:
        (folder / f'{rank}.txt').write_text(str(error))
    weights = runner.model.module.state_dict()
    torch.save(weights, folder / f'{rank}.pth')


def test_all_processes_decide_alike(tmp_path):
    """The images of the second process alone are broken; none takes a step."""
    run_processes(_one_process, tmp_path, 2)
    for rank in range(2):
        text = (tmp_path / f'{rank}.txt').read_text()
        assert 'iteration 4 is not finite: loss is nan on' in text
        weights = torch.load(tmp_path / f'{rank}.pth')
        two = torch.load(tmp_path / 'work' / 'iter_2.pth', weights_only=False)
        names = [name for name in weights if name != 'mean_image']  # one per process
        assert all(
            weights[name].equal(two['ema_state_dict'][f'module.{name}'])
            for name in names
        )


def test_only_the_sum_overflows():
    hook = NonFiniteLossHook()
    huge = torch.tensor(3e38)
    losses = dict(loss_a=huge, loss_b=[huge], acc=torch.tensor(float('nan')))
    hook._watch(None, (), dict(mode='loss'), losses)
    assert hook._is_bad()
    assert hook._describe(None).startswith('the sum of the losses is inf on')


def test_other_modes_and_other_outputs_do_not_count():
    hook = NonFiniteLossHook()
    hook._watch(None, (), dict(mode='tensor'), torch.tensor(float('nan')))
    accuracy = dict(loss=torch.ones(()), acc=torch.tensor(float('nan')))
    hook._watch(None, (), dict(mode='loss'), accuracy)
    assert not hook._is_bad()


def test_patience_error():
    with pytest.raises(ValueError, match='patience must be at least 1, got 0'):
        NonFiniteLossHook(0)
