"""How fast a training is, and how much of the device it uses."""

import torch
from mmengine import dist
from mmengine.hooks import Hook, LoggerHook
from mmengine.runner import Runner

from sapiens2_mm.registry import HOOKS

from ..planning.flops import count_train_flops, peak_flops


@HOOKS.register_module()
class ThroughputHook(Hook):
    """Logs ``images/s``, ``data_share`` and ``mfu`` of the training.

    * ``images/s``: of all processes together.
    * ``data_share``: part of the time in which the model waits for data, 0 to 1.
    * ``mfu`` (model FLOPs utilization): the FLOPs that the model needs for its images,
      over those that the device can do meanwhile, 0 to 1. What is computed anew to
      save memory does not count. The FLOPs are counted once, before the training,
      see ``count_train_flops``.

    All are of the time that the same line of the log shows, but for the first
    iteration, which warms up. Needs ``IterTimerHook``.

    Args:
        peak_tflops: what one device can do, in 1e12 FLOP/s at the precision of the
            training. None looks the GPU up by its name, and measures a CPU; of a GPU
            that is not listed ``mfu`` is left out, which is said once.
    """

    priority = 'NORMAL'  # after the timer, which comes first in the config

    def __init__(self, peak_tflops: float | None = None) -> None:
        self.peak_tflops = peak_tflops
        self.flops_per_image = 0
        self.peak: float | None = None

    def before_train(self, runner: Runner) -> None:
        loggers = [hook for hook in runner.hooks if isinstance(hook, LoggerHook)]
        self.interval = min((hook.interval for hook in loggers), default=0)
        self.first_iter = runner.iter
        if self.peak_tflops is not None:
            self.peak = 1e12 * self.peak_tflops
        else:
            self.peak = _peak(runner)
        if self.peak is None:
            runner.logger.warning(
                'ThroughputHook: the peak of this device is not known, so the log has '
                'no mfu; set default_hooks.throughput.peak_tflops'
            )
            return
        try:
            self.flops_per_image = count_train_flops(runner.cfg)
        except Exception as err:  # of any model: a run must not end for its log
            runner.logger.warning(
                f'ThroughputHook: the FLOPs of this model cannot be counted, so the '
                f'log has no mfu: {err}'
            )

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: dict | None = None,
        outputs: dict | None = None,
    ) -> None:
        if not self.every_n_inner_iters(batch_idx, self.interval):
            return
        hub = runner.message_hub
        window = min(runner.log_processor.window_size, runner.iter - self.first_iter)
        seconds, waited = (
            hub.get_scalar(f'train/{name}').mean(max(window, 1))
            for name in ('time', 'data_time')
        )
        rate = num_images(data_batch['inputs']) / seconds
        hub.update_scalar('train/images/s', rate * dist.get_world_size())
        hub.update_scalar('train/data_share', waited / seconds)
        if self.flops_per_image:
            hub.update_scalar('train/mfu', rate * self.flops_per_image / self.peak)


def num_images(inputs: torch.Tensor | list[torch.Tensor]) -> int:
    """Of a batch (B, 3, H, W), a list of images, or a list of views, each a batch."""
    return len(inputs[0] if inputs[0].ndim == 4 else inputs)


def _peak(runner: Runner) -> float | None:
    strategy = runner.cfg.get('strategy') or {}
    dtype = getattr(torch, strategy.get('param_dtype') or 'float32')
    if hasattr(runner.optim_wrapper, 'cast_dtype'):  # of mixed precision
        dtype = runner.optim_wrapper.cast_dtype or torch.float16
    return peak_flops(next(runner.model.parameters()).device, dtype)
