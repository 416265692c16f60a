"""Logs how hard each loss pulls on the backbone."""

from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.runner import Runner
from torch import Tensor, nn

from sapiens2_mm.checkpoint.loading import is_sharded
from sapiens2_mm.registry import HOOKS

from ..parallelize import blocks_of, keep_graph


@HOOKS.register_module()
class LossGradientHook(Hook):
    """Logs the gradient norm of every loss on its own, at the backbone's parameters.

    ``loss_mae`` gives ``backbone_grad_norm_mae``, and so on; weights of the losses are
    in it. It is that of one process and of one batch, before accumulation, clipping and
    gradient scaling. A loss that no longer teaches the backbone, a dead contrast say,
    shows as a norm near 0.

    The gradients come from the graph of the training step itself, before its backward
    pass, and are thrown away: no second forward pass, no change of weights, buffers or
    random numbers. A measurement costs one backward pass per loss, less than two steps
    of ``Sapiens2Pretrain``.

    Args:
        interval: iterations between measurements, the first one at the start; 0 makes
            none.
    """

    priority = 'NORMAL'

    def __init__(self, interval: int = 200) -> None:
        self.interval = interval
        self._is_due = False

    def before_train(self, runner: Runner) -> None:
        model = runner.model.module if is_model_wrapper(runner.model) else runner.model
        self._model, self._message_hub = model, runner.message_hub
        self._handles = [model.register_forward_hook(self._measure, with_kwargs=True)]
        for module in (model, *blocks_of(model.backbone)):
            self._handles.append(module.register_forward_pre_hook(self._collect))

    def after_train(self, runner: Runner) -> None:
        for handle in self._handles:
            handle.remove()

    def before_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None
    ) -> None:
        self._is_due = self.interval > 0 and runner.iter % self.interval == 0
        keep_graph(self._model, self._is_due)
        self._params: dict[int, nn.Parameter] = {}

    def _collect(self, module: nn.Module, args: tuple) -> None:
        """Parameters that the forward pass uses: if sharded, those it has gathered."""
        for parameter in getattr(module, 'backbone', module).parameters():
            if parameter.requires_grad and not is_sharded(parameter):
                self._params[id(parameter)] = parameter

    def _measure(
        self, model: nn.Module, args: tuple, kwargs: dict, losses: dict[str, Tensor]
    ) -> None:
        if not self._is_due or kwargs.get('mode') != 'loss':
            return
        for name, loss in losses.items():
            if name.startswith('loss_'):
                self._message_hub.update_scalar(
                    f'train/backbone_grad_norm_{name.removeprefix("loss_")}',
                    gradient_norm(loss, list(self._params.values())),
                )


def gradient_norm(loss: Tensor, params: list[Tensor]) -> float:
    """L2 norm of the gradient at all ``params`` together; the graph is kept."""
    with torch.autocast(loss.device.type, enabled=False):
        grads = torch.autograd.grad(loss, params, retain_graph=True, allow_unused=True)
    norms = [grad.float().norm() for grad in grads if grad is not None]
    return float(torch.stack(norms).norm())
