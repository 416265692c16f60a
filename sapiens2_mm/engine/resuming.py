"""What a resumed run takes from its checkpoint, and what from its config."""

import logging
import warnings
from collections.abc import Iterator
from typing import Any

from mmengine.hooks import EMAHook, ParamSchedulerHook
from mmengine.optim import OptimWrapper, OptimWrapperDict
from mmengine.runner import EpochBasedTrainLoop, Runner
from torch import Tensor

from sapiens2_mm.checkpoint.errors import CheckpointError, holds_weights_only, listed

# In the state of a scheduler, but no settings: how far it has come, what follows from
# other settings.
_PROGRESS = {'optimizer', 'verbose', 'base_values', 'last_step', 'total_iters'}
_PROGRESS |= {'best', 'num_bad_epochs', 'cooldown_counter'}
_MEMBERS = {'params', 'param_names'}


def check_training_state(runner: Runner, checkpoint: dict, source: str) -> None:
    """The file must hold all that a run goes on with, and this run must use it.

    Args:
        runner: with optimizer and schedulers as its config builds them.
        checkpoint: as read.
        source: for messages.

    Raises:
        CheckpointError: names what is missing.
    """
    if 'optimizer' not in checkpoint or 'iter' not in checkpoint['meta']:
        raise holds_weights_only(source)
    wrong = _wrong_parts(checkpoint, isinstance(runner.optim_wrapper, OptimWrapperDict))
    if wrong:
        raise CheckpointError(
            f'cannot resume from {source}: {listed(wrong)} in it are not what a run '
            'writes; take an older file, or start from its weights by load_from'
        )
    meta = checkpoint['meta']
    by_epoch = isinstance(runner.train_loop, EpochBasedTrainLoop)
    at, end = ('epoch', runner.max_epochs) if by_epoch else ('iter', runner.max_iters)
    if not 0 <= meta['epoch'] <= meta['iter'] or meta[at] > end:
        raise CheckpointError(
            f'cannot resume from {source}: it stands at epoch {meta["epoch"]}, iter '
            f'{meta["iter"]}, and this run ends at {at} {end}; let the run be longer'
        )
    averages = any(isinstance(hook, EMAHook) for hook in runner.hooks)
    if 'ema_state_dict' in checkpoint and not averages:
        raise CheckpointError(
            f'cannot resume from {source}: its run averages the weights and this one, '
            'without the EMAHook, would go on from the averages. Put the hook back '
            'into custom_hooks, or start a new run from the averages by load_from'
        )
    names = {f'module.{key}' for key in checkpoint['state_dict']}
    lost = names - set(checkpoint.get('ema_state_dict', names))
    if lost:
        raise CheckpointError(
            f'cannot resume from {source}: its ema_state_dict lacks {listed(lost)}; '
            'start a new run from its weights by load_from instead'
        )


def _wrong_parts(checkpoint: dict, several: bool) -> list[str]:
    """What in a checkpoint has another form than mmengine and our hooks need."""
    optimizer = dict(state=dict, param_groups=[dict(params=list)])
    forms = dict(
        meta=dict(iter=int, epoch=int),
        message_hub=dict(log_scalars=dict, runtime_info=dict, resumed_keys=dict),
        optimizer={str: optimizer} if several else optimizer,
    )
    if 'ema_state_dict' in checkpoint:
        forms['ema_state_dict'] = {str: Tensor}
    if isinstance(checkpoint.get('param_schedulers'), dict):
        forms['param_schedulers'] = {str: [dict]}
    elif 'param_schedulers' in checkpoint:
        forms['param_schedulers'] = [dict]
    return [key for key in forms if not _has_form(checkpoint.get(key), forms[key])]


def _has_form(value: Any, form: Any) -> bool:
    if isinstance(form, list):  # of values of one form
        return isinstance(value, list) and all(_has_form(v, form[0]) for v in value)
    if not isinstance(form, dict):
        return isinstance(value, form)
    if not isinstance(value, dict):
        return False
    if str in form:
        return all(_has_form(v, form[str]) for v in value.values())
    return all(_has_form(value.get(key), form[key]) for key in form)


def check_same_optimizer(runner: Runner, checkpoint: dict, source: str) -> None:
    """Optimizer, its parameters and the kinds of schedules must be those of the file.

    Args: as ``check_training_state``.

    Raises:
        CheckpointError: names what differs.
    """
    for what, theirs, ours in _identities(runner, checkpoint):
        if theirs != ours:
            raise CheckpointError(
                f'cannot resume from {source}: {what} {theirs} in it and {ours} in '
                'this run; it is incomplete, or the settings have changed. Start a new '
                'run from its weights by load_from instead'
            )


def follow_config(runner: Runner, checkpoint: dict, source: str) -> None:
    """Let settings of optimizer and schedule hold that were changed in the config.

    mmengine takes rates, decays and the end of the schedule from the file, so that a
    run that is made longer trains on with a rate of 0. Here the states in
    ``checkpoint`` become those that the config would have led to at this iteration. If
    nothing was changed they stay as they are. A schedule that follows a metric cannot
    be computed anew; the settings of the file hold then. One warning names the changes
    and what holds.

    Raises:
        CheckpointError: if the rates are 0 from here on.
    """
    changes = _changes(runner, checkpoint)
    done = min(checkpoint['meta']['iter'], runner.max_iters)
    if changes:
        follows_metric = any(
            hasattr(scheduler, 'need_val_args')
            for scheduler in _schedulers(runner.param_schedulers).values()
        )
        holds = (
            'the settings of the file hold, as a schedule that follows a metric '
            'cannot be computed anew'
            if follows_metric
            else f'from iteration {done} on those of the config hold'
        )
        runner.logger.log(
            logging.WARNING,
            f'settings were changed since {source} was written: {listed(changes)}; '
            f'{holds}',
        )
        if not follows_metric:
            _replay(runner, done, checkpoint['meta']['epoch'])
            _take_over(runner, checkpoint)
    _check_end(runner, checkpoint, done)


def optimizer_names(wrapper: OptimWrapper | OptimWrapperDict) -> dict[str, str]:
    """Class names of the optimizers, under '' if there is only one."""
    wrappers = _by_name(wrapper, wrapper)
    return {name: type(each.optimizer).__name__ for name, each in wrappers.items()}


def _by_name(wrapper: OptimWrapper | OptimWrapperDict, content: Any) -> dict[str, Any]:
    """What belongs to the optimizers, one or several of them."""
    several = isinstance(wrapper, OptimWrapperDict)
    return dict(content.items()) if several else {'': content}


def _schedulers(content: Any) -> dict[str, Any]:
    """Schedulers, or their states, by what to call them."""
    several = content if isinstance(content, dict) else {'param_scheduler': content}
    return {
        f'{name}[{number}]': scheduler
        for name, schedulers in several.items()
        for number, scheduler in enumerate(schedulers or [])
    }


def _groups(runner: Runner, checkpoint: dict) -> Iterator[tuple[str, dict, dict]]:
    """Name of a parameter group, the group in the file and that of the run."""
    wrapper = runner.optim_wrapper
    states = _by_name(wrapper, checkpoint['optimizer'])
    for key, each in _by_name(wrapper, wrapper).items():
        theirs = list(states[key]['param_groups'])
        if each.base_param_settings is not None:
            theirs.append(states[key]['base_param_settings'])
        for number, pair in enumerate(zip(theirs, each.param_groups, strict=True)):
            yield f'{key} parameter group {number}'.strip(), *pair


def _identities(runner: Runner, checkpoint: dict) -> Iterator[tuple[str, Any, Any]]:
    """What must be equal, as it is in the file and in the run."""
    ours = runner.param_schedulers
    theirs = checkpoint.get('param_schedulers')
    if ours:  # mmengine would start those that the file lacks anew, unsaid
        numbers = (len(_schedulers(schedulers)) for schedulers in (theirs, ours))
        yield 'the number of parameter schedulers is', *numbers
    wrapper, saved = runner.optim_wrapper, checkpoint['optimizer']
    names = optimizer_names(wrapper)
    yield 'the optimizer is', checkpoint['meta'].get('optimizers', names), names
    wrappers = _by_name(wrapper, wrapper)
    for key, state in _by_name(wrapper, saved).items():
        sizes = [
            [len(group['params']) for group in groups]
            for groups in (state['param_groups'], wrappers[key].optimizer.param_groups)
        ]
        yield 'the sizes of the parameter groups are', *sizes
    for name, old, new in _groups(runner, checkpoint):
        options = [group.keys() - _MEMBERS for group in (old, new)]
        if options[0] - options[1] and options[1] - options[0]:
            yield 'the settings of the optimizer are', *map(sorted, options)
        members = [set(group.get('param_names', ())) for group in (old, new)]
        if all(members):
            only = [sorted(members[i] - members[1 - i]) for i in (0, 1)]
            yield f'{name} has apart from the common ones', *map(listed, only)


def _changes(runner: Runner, checkpoint: dict) -> list[str]:
    """Settings of the schedule and the optimizer that differ, with both values."""
    found = {}
    ours = _schedulers(runner.param_schedulers)
    theirs = _schedulers(checkpoint.get('param_schedulers'))
    for name, scheduler in ours.items():
        old, new = theirs[name], scheduler.state_dict()
        for key in sorted((old.keys() | new.keys()) - _PROGRESS):
            if not key.startswith('_') and old.get(key) != new.get(key):
                found[f'{key} of {name}'] = old.get(key), new.get(key)
    for _, old, new in _groups(runner, checkpoint):
        scheduled = {key.removeprefix('initial_') for key in new if 'initial_' in key}
        if 'momentum' in scheduled:
            scheduled.add('betas')
        for key in sorted((old.keys() & new.keys()) - scheduled - _MEMBERS):
            if old[key] != new[key]:  # the last group has the rate of the config
                found[key] = old[key], new[key]
    return [f'{key} from {old} to {new}' for key, (old, new) in found.items()]


def _replay(runner: Runner, iterations: int, epochs: int) -> None:
    """Step the schedulers as often as a run of this length does."""
    hook = ParamSchedulerHook()
    per_epoch = iterations // epochs if epochs else iterations + 1
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', 'Detected call of `scheduler.step')
        for iteration in range(1, iterations + 1):
            hook.after_train_iter(runner, iteration - 1)
            if iteration % per_epoch == 0:
                hook.after_train_epoch(runner)


def _take_over(runner: Runner, checkpoint: dict) -> None:
    """Put the settings and values of the run into the states of the file."""
    for _, old, new in _groups(runner, checkpoint):
        old.update({key: new[key] for key in new if key not in _MEMBERS})
    theirs = _schedulers(checkpoint.get('param_schedulers'))
    for name, scheduler in _schedulers(runner.param_schedulers).items():
        theirs[name].clear()
        theirs[name].update(scheduler.state_dict())


def _check_end(runner: Runner, checkpoint: dict, done: int) -> None:
    """Say what holds if the schedule, or the whole run, has ended."""
    left = runner.max_iters - done
    if left == 0:
        text = 'the run is complete; raise train_cfg.max_iters to train on'
        runner.logger.log(logging.WARNING, f'{done} of {done} iterations: {text}')
        return
    states = _schedulers(checkpoint.get('param_schedulers')).values()
    if not states or any(state['_global_step'] < state['end'] for state in states):
        return
    lr = max(float(group['lr']) for _, group, _ in _groups(runner, checkpoint))
    ends = [state['end'] for state in states]
    text = (
        f'the schedule of the learning rate has ended (end={ends}), and the {left} '
        f'iterations that are left would train with a rate of {lr:.3g}'
    )
    advice = f'set end of param_scheduler to train_cfg.max_iters={runner.max_iters}'
    if lr == 0:
        raise CheckpointError(f'{text}; {advice}')
    runner.logger.log(logging.WARNING, f'{text}; if that is not meant, {advice}')
