"""Skips iterations whose loss is not finite, and ends a training that has several."""

import math
from typing import Any

import torch
from mmengine import dist
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.optim import OptimWrapperDict
from mmengine.runner import Runner
from torch import Tensor, nn
from torch.optim import Optimizer

from sapiens2_mm.registry import HOOKS


@HOOKS.register_module()
class NonFiniteLossHook(Hook):
    """Skip iterations whose loss is NaN or infinite, and stop after several in a row.

    Such an iteration changes no weight: its gradients, and those accumulated with it,
    are dropped before the optimizer steps, and buffers get back their values. It is
    logged as a warning with the losses, the iteration and the images. If it happens in
    one of several processes, all of them skip it. No step waits for the device: the
    verdict is on its way to the host while the backward pass runs.

    The losses are those that a model returns in mode ``'loss'``. Gradients that
    overflow in half precision stay the business of the gradient scaler.

    Args:
        patience: number of such iterations in a row that end the training.

    Raises:
        ValueError: if ``patience`` is less than 1.
    """

    priority = 'VERY_HIGH'  # before hooks that follow or save the weights

    def __init__(self, patience: int = 3) -> None:
        if patience < 1:
            raise ValueError(
                f'NonFiniteLossHook: patience must be at least 1, got {patience}'
            )
        self.patience = patience
        self.num_in_row = 0
        self._losses: dict[str, Tensor] = {}
        self._flag: Tensor | None = None  # on the host, once the event has happened
        self._event: torch.cuda.Event | None = None
        self._taints_gradients = False  # of an accumulated iteration
        self._buffers: list[tuple[Tensor, Tensor]] = []

    def before_train(self, runner: Runner) -> None:
        model, wrapper = _unwrap(runner.model), runner.optim_wrapper
        is_dict = isinstance(wrapper, OptimWrapperDict)
        self._wrappers = list(wrapper.values()) if is_dict else [wrapper]
        self._handles = [model.register_forward_hook(self._watch, with_kwargs=True)]
        for each in self._wrappers:
            handle = each.optimizer.register_step_pre_hook(self._drop_gradients)
            self._handles.append(handle)

    def after_train(self, runner: Runner) -> None:
        for handle in self._handles:
            handle.remove()
        self._buffers, self._wrappers = [], []

    def before_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None
    ) -> None:
        self._losses, self._flag = {}, None
        model = _unwrap(runner.model)
        self._buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]

    @torch.no_grad()
    def _watch(self, model: nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
        """Between forward and backward pass: is any loss of any process not finite?"""
        if kwargs.get('mode') != 'loss':
            return
        losses = {k: _mean(v) for k, v in output.items() if 'loss' in k}
        losses['the sum of the losses'] = sum(losses.values())
        finite = torch.stack([value.isfinite() for value in losses.values()]).all()
        flag = (~finite).float()
        dist.all_reduce(flag, 'max')
        self._losses = losses
        self._flag = flag.to('cpu', non_blocking=True)
        if flag.is_cuda:
            self._event = torch.cuda.Event()
            self._event.record()

    def _is_bad(self) -> bool:
        if self._event is not None:
            self._event.synchronize()
        return self._flag is not None and bool(self._flag)

    def _drop_gradients(self, optimizer: Optimizer, args: tuple, kwargs: dict) -> None:
        """Right before a step; without gradients the optimizer does nothing."""
        if self._taints_gradients or self._is_bad():
            optimizer.zero_grad(set_to_none=True)

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: dict | None = None,
        outputs: dict | None = None,
    ) -> None:
        """Count iterations that are not finite.

        Raises:
            FloatingPointError: if there are ``patience`` of them in a row.
        """
        bad = self._is_bad()
        stepped = all(wrapper.should_update() for wrapper in self._wrappers)
        self._taints_gradients = (bad or self._taints_gradients) and not stepped
        if not bad:
            self.num_in_row = 0
            return
        for buffer, before in self._buffers:
            buffer.copy_(before)
        self.num_in_row += 1
        message = (
            f'the loss of iteration {runner.iter + 1} is not finite: '
            f'{self._describe(data_batch)}. No weight was changed by it'
        )
        if self.num_in_row >= self.patience:
            raise FloatingPointError(
                f'{message}. Training stops after {self.num_in_row} such iterations in '
                'a row; the last checkpoint is intact. Look at these images and their '
                'annotations; if they are right, lower the learning rate or clip the '
                'gradients'
            )
        runner.logger.warning(message)

    def _describe(self, data_batch: dict | None) -> str:
        """Losses and images of the processes that met a loss that is not finite."""
        values = {name: value.item() for name, value in self._losses.items()}
        bad = [f'{k} is {v}' for k, v in values.items() if not math.isfinite(v)]
        text = ', '.join(bad[:-1] or bad)  # the last is the sum
        if text:
            text += f' on {", ".join(_image_names(data_batch))}'
        return '; '.join(filter(None, dist.all_gather_object(text)))


def _mean(value: Tensor | list[Tensor]) -> Tensor:
    """A loss as mmengine adds it up."""
    return value.mean() if isinstance(value, Tensor) else sum(v.mean() for v in value)


def _image_names(data_batch: dict | None) -> list[str]:
    samples = (data_batch or {}).get('data_samples') or []
    names = [s.get('img_path', s.get('img_id')) for s in samples]
    return [str(name) for name in names] or ['images without a name']


def _unwrap(model: nn.Module) -> nn.Module:
    return model.module if is_model_wrapper(model) else model
