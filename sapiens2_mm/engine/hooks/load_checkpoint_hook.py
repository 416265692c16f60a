"""What a runner may load, and for what."""

import logging
from collections.abc import Sequence

from mmengine.dist import broadcast_object_list, is_main_process
from mmengine.hooks import Hook
from mmengine.model import BaseTTAModel, PretrainedInit, is_model_wrapper
from mmengine.optim import OptimWrapper, OptimWrapperDict
from mmengine.runner import Runner
from torch import nn

from sapiens2_mm.checkpoint.loading import fill_parameters, log_summary
from sapiens2_mm.checkpoint.matching import match
from sapiens2_mm.checkpoint.strictness import (
    COMPUTED,
    check_inference,
    check_resume,
    check_training,
)
from sapiens2_mm.registry import HOOKS

from ..resuming import (
    check_same_optimizer,
    check_training_state,
    follow_config,
    optimizer_names,
)
from ..work_dir import latest_intact_checkpoint

_HEADS = ('head.', 'decode_head.')


@HOOKS.register_module()
class LoadCheckpointHook(Hook):
    """Match a checkpoint to the model by name, and refuse one that does not fit.

    * Testing needs every weight.
    * Training by ``load_from`` needs the whole backbone. The head may be absent, or
      end in a layer of another size: that part starts untrained, with one warning.
    * Resuming needs the same model and optimizer. Settings of the optimizer and its
      schedule that were changed in the config hold from then on, with one warning.

    ``model.init_cfg = dict(type='Pretrained', checkpoint=...)`` of a whole model is
    loaded as ``load_from`` is, if there is no ``load_from``.

    One line in the log counts matched, missing and unexpected keys.

    Args:
        allow_missing: shell patterns of weights inside the backbone that ``load_from``
            may leave untrained, such as ``'*.adapter.*'``, or ``'*tokenizer.*'`` for
            1K weights in a 4K model.
    """

    priority = 'VERY_HIGH'  # before hooks that read the weights, such as EMAHook

    def __init__(self, allow_missing: Sequence[str] = ()) -> None:
        self.allow_missing = tuple(allow_missing)

    def before_run(self, runner: Runner) -> None:
        """Find the file to start from: the latest, or ``init_cfg`` of the model."""
        if runner._resume and not runner._load_from:
            path = [is_main_process() and latest_intact_checkpoint(runner.work_dir)]
            broadcast_object_list(path)
            runner._load_from = path[0]
        model = unwrapped(runner.model)
        path = whole_model_file(getattr(model, 'init_cfg', None))
        if path and not runner._load_from and not runner._resume:
            # mmengine's own loading of it says nothing if no key matches.
            runner._load_from, model.init_cfg = path, None

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        checkpoint['meta']['optimizers'] = optimizer_names(runner.optim_wrapper)

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Give the weights the model's names.

        Raises:
            CheckpointError: names the keys and both shapes.
        """
        model = unwrapped(runner.model)
        if any('_flat_param' in name for name, _ in model.named_parameters()):
            return  # sharded weights have other shapes; their strategy checks them
        source = getattr(checkpoint, 'source', 'the checkpoint')
        if runner._resume:
            check_training_state(runner, checkpoint, source)
        found = match(checkpoint['state_dict'], model, source)
        if runner._resume:
            check_resume(found, source)
            check_same_optimizer(runner, checkpoint, source)
            follow_config(runner, checkpoint, source)
        elif isinstance(runner.optim_wrapper, OptimWrapper | OptimWrapperDict):
            warning = check_training(found, source, self.allow_missing)
            if warning:
                runner.logger.log(logging.WARNING, warning)
        else:
            check_inference(found, source)
        log_summary(found, source)
        own = model.state_dict()
        for key in [*found.missing, *found.mismatched]:
            computed = key.startswith(found.backbone) and key.endswith(COMPUTED)
            new = key.startswith((*_HEADS, f'{found.backbone}tokenizer.'))
            if new or computed:
                found.state[key] = own[key]  # or mmengine would warn once more
        if not runner._resume:  # a file that is resumed from may be deleted soon
            fill_parameters(model, found.state)
        checkpoint['state_dict'] = found.state


def whole_model_file(init_cfg: dict | list[dict] | None) -> str | None:
    """The checkpoint of an ``init_cfg`` that fills a model by it and nothing else."""
    if isinstance(init_cfg, dict) and set(init_cfg) == {'type', 'checkpoint'}:
        is_file = init_cfg['type'] in ('Pretrained', PretrainedInit)
        return init_cfg['checkpoint'] if is_file else None
    return None


def unwrapped(model: nn.Module) -> nn.Module:
    """The model inside what mmengine wraps it in: processes, test-time augmentation."""
    while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
        model = model.module
    return model
