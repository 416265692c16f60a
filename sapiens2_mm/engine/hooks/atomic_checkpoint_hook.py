"""Checkpoints that are complete or not there."""

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from mmengine import dist
from mmengine.dist import is_main_process
from mmengine.fileio import LocalBackend, register_backend
from mmengine.hooks import CheckpointHook
from mmengine.runner import Runner

from sapiens2_mm.checkpoint import CheckpointError, read_checkpoint
from sapiens2_mm.checkpoint.io.atomic import remove, write_atomically
from sapiens2_mm.registry import HOOKS

from ..end_signal import EndSignal
from ..work_dir import claim, latest_checkpoint, release

_BACKEND = 'sapiens2_mm.atomic'
_LOCAL = dict(backend=_BACKEND)


class AtomicLocalBackend(LocalBackend):
    """mmengine's local files, written by ``write_atomically``."""

    def put(self, obj: bytes, filepath: str | Path) -> None:
        write_atomically(filepath, obj)

    def put_text(self, obj: str, filepath: str | Path, encoding: str = 'utf-8') -> None:
        write_atomically(filepath, obj.encode(encoding))


register_backend(_BACKEND, AtomicLocalBackend, force=True)


def _resumes_in(out_dir: str, runner: Runner) -> bool:
    if not runner._resume:
        return False
    source = runner._load_from or latest_checkpoint(runner.work_dir)
    return (
        source is not None and Path(source).resolve().parent == Path(out_dir).resolve()
    )


def _remove(path: str, backend: Any) -> None:
    if backend.isfile(path):
        backend.remove(path)
    elif backend.isdir(path):  # of a sharded run, or written by deepspeed
        backend.rmtree(path)


def _saver(runner: Runner) -> Any:
    return getattr(getattr(runner, 'strategy', None), 'saver', None)


def _when_written(runner: Runner, function: Callable[[], Any]) -> None:
    """In the main process, as soon as the checkpoint is on the disk."""
    saver = _saver(runner)
    function() if saver is None else saver.then(function)


def _wait(runner: Runner) -> None:
    saver = _saver(runner)
    if saver is not None:
        saver.wait()


def _check_metainfo(dataset: Any) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, 'metainfo.pth')
        meta = dict(dataset_meta=getattr(dataset, 'metainfo', None))
        torch.save(dict(state_dict=dict(weight=torch.zeros(1)), meta=meta), path)
        try:
            read_checkpoint(path)
        except CheckpointError as err:
            raise TypeError(
                f'the metainfo of {type(dataset).__name__} would be written into '
                'checkpoints that are refused when they are read; give it plain '
                f'numbers, strings, lists, dicts and numpy arrays: {err.__cause__}'
            ) from err


class _RemovesLater:
    """A file backend that only notes what to remove."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.removed: list[str] = []

    def remove(self, filepath: str) -> None:
        self.removed.append(filepath)

    rmtree = remove

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)


@HOOKS.register_module()
class AtomicCheckpointHook(CheckpointHook):
    """mmengine's ``CheckpointHook`` for runs that may be killed at any moment.

    Checkpoints and ``last_checkpoint`` appear complete under their final names, and an
    old checkpoint is removed only when the new one is on the disk; mmengine writes in
    place and removes first. Only files of the run in its own folder are ever removed;
    a run that is resumed from another folder leaves that one as it is, and a second run
    in a folder that is in use is refused. A hook's method
    ``before_save_in_all_processes(runner)`` is called in all of them beforehand;
    ``before_save_checkpoint`` is called in the one that writes. With ``backend_args``
    or a remote ``out_dir`` the writing is left to that storage.

    On SIGTERM or SIGUSR1, as schedulers of clusters send them, the iteration is
    completed, a checkpoint is written and all processes end with 128 and the number of
    the signal: 143 or 138. A run by epochs writes none, as it can only be resumed from
    the end of an epoch.

    A strategy with a ``saver`` (``ShardedSaver``) writes beside the training; what
    follows from a new checkpoint waits until it is complete.

    Args:
        keep: iterations, or epochs if ``by_epoch``, of which a checkpoint is written
            whatever ``interval`` says and kept whatever ``max_keep_ckpts`` says.
        args, kwargs: of ``CheckpointHook``.

    Raises:
        RuntimeError: before training, if another run has the folder.
        TypeError: before training, if the metainfo of the data, which mmengine writes
            into checkpoints, holds more than plain values.
        OSError: if a checkpoint cannot be written; those before are intact.
    """

    def __init__(self, *args: Any, keep: Sequence[int] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.keep = frozenset(keep)
        is_local = self.out_dir is None or '://' not in str(self.out_dir)
        if is_local and self.backend_args is None and self.file_client_args is None:
            self.backend_args = _LOCAL
        self._end_signal = EndSignal()

    def before_train(self, runner: Runner) -> None:
        info = runner.message_hub.runtime_info
        # What a resumed file names may be files of another run, or any file.
        steps = info.get('keep_ckpt_ids', [])
        best = {key: info[key] for key in info if key.startswith('best_ckpt')}
        info.update(dict.fromkeys(best))
        if steps:
            info['keep_ckpt_ids'] = []
        super().before_train(runner)
        for folder in self._folders(runner):
            claim(folder)
        if is_main_process():
            _check_metainfo(runner.train_dataloader.dataset)
        self._end_signal.listen()
        if _resumes_in(self.out_dir, runner):
            self._take_over(runner, steps, best)
        if self.backend_args == _LOCAL and is_main_process():
            for leftover in Path(self.out_dir).glob('.*.pth.*.tmp'):
                remove(leftover)

    def after_train(self, runner: Runner) -> None:
        _wait(runner)
        super().after_train(runner)
        self._let_go(runner)

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        """Save, if it is time.

        Raises:
            SystemExit: after a signal, when all is saved.
        """
        super().after_train_iter(runner, *args, **kwargs)
        if not self.by_epoch:
            self._save_milestone(runner, runner.iter + 1)
        number = self._end_signal.number(next(runner.model.parameters()).device)
        if not number:
            return
        last = self.filename_tmpl.format(runner.iter + 1)
        if not self.by_epoch and Path(str(self.last_ckpt)).name != last:
            self._save_checkpoint(runner)
        _wait(runner)
        saved = Path(self.last_ckpt).name if self.last_ckpt else 'no checkpoint'
        runner.logger.warning(
            f'{signal.Signals(number).name}: the run ends after iteration '
            f'{runner.iter + 1} with {saved} in {self.out_dir}; --resume continues '
            'from there'
        )
        self._let_go(runner)
        dist.barrier()  # launchers kill the others when the first process ends
        raise SystemExit(128 + number)

    def after_train_epoch(self, runner: Runner) -> None:
        super().after_train_epoch(runner)
        if self.by_epoch:
            self._save_milestone(runner, runner.epoch + 1)

    def _save_milestone(self, runner: Runner, step: int) -> None:
        saved = Path(str(self.last_ckpt)).name == self.filename_tmpl.format(step)
        if step in self.keep and not saved:
            self._save_checkpoint(runner)

    def _folders(self, runner: Runner) -> set[str]:
        """The local folders that the run writes to; none in the other processes."""
        if not is_main_process():
            return set()
        return {
            runner.work_dir,
            *([self.out_dir] if self.backend_args == _LOCAL else []),
        }

    def _let_go(self, runner: Runner) -> None:
        for folder in self._folders(runner):
            release(folder)
        self._end_signal.stop_listening()

    def _take_over(self, runner: Runner, steps: Any, best: dict[str, Any]) -> None:
        """Go on with the files of this folder that a resumed run has written."""
        for key, path in best.items():
            name = Path(str(path)).name
            if name.startswith('best_') and Path(self.out_dir, name).is_file():
                path = self.file_backend.join_path(self.out_dir, name)
                runner.message_hub.update_info(key, path)
                if key == 'best_ckpt':
                    self.best_ckpt_path = path
                else:
                    self.best_ckpt_path_dict[key.removeprefix('best_ckpt_')] = path
        if self.max_keep_ckpts > 0 and steps:
            steps = [s for s in steps if isinstance(s, int) and s not in self.keep]
            if is_main_process():
                for step in steps[: -self.max_keep_ckpts]:
                    self._remove_step(step)
            self.keep_ckpt_ids.extend(steps)
            runner.message_hub.update_info('keep_ckpt_ids', list(self.keep_ckpt_ids))

    def _remove_step(self, step: int) -> None:
        name = self.filename_tmpl.format(step)
        _remove(self.file_backend.join_path(self.out_dir, name), self.file_backend)

    def _save_checkpoint_with_step(self, runner: Runner, step: int, meta: dict) -> None:
        outdated = []
        limited = self.max_keep_ckpts > 0 and step not in self.keep
        if limited and (not self.keep_ckpt_ids or self.keep_ckpt_ids[-1] != step):
            if len(self.keep_ckpt_ids) == self.max_keep_ckpts:
                outdated.append(self.keep_ckpt_ids.popleft())
            self.keep_ckpt_ids.append(step)
            # The file names the outdated one too: a run that is killed before it is
            # removed does so when it is resumed.
            present = [*outdated, *self.keep_ckpt_ids]
            runner.message_hub.update_info('keep_ckpt_ids', present)
        name = self.filename_tmpl.format(step)
        self.last_ckpt = self.file_backend.join_path(self.out_dir, name)
        runner.message_hub.update_info('last_ckpt', self.last_ckpt)
        runner.call_hook('before_save_in_all_processes')
        runner.save_checkpoint(
            self.out_dir,
            name,
            self.file_client_args,
            save_optimizer=self.save_optimizer,
            save_param_scheduler=self.save_param_scheduler,
            meta=meta,
            by_epoch=self.by_epoch,
            backend_args=self.backend_args,
            **self.args,
        )
        if outdated:
            runner.message_hub.update_info('keep_ckpt_ids', list(self.keep_ckpt_ids))
        if not is_main_process():
            return
        # A name without the folder, so that the folder may be moved.
        latest = str(self.last_ckpt).removeprefix(f'{runner.work_dir}/')

        def follow() -> None:
            write_atomically(Path(runner.work_dir, 'last_checkpoint'), latest.encode())
            for old in outdated:
                self._remove_step(old)

        _when_written(runner, follow)

    def _save_best_checkpoint(self, runner: Runner, metrics: dict) -> None:
        if not hasattr(self, 'file_backend'):  # runner.val() alone: nothing was trained
            return
        backend = self.file_backend
        self.file_backend = _RemovesLater(backend)
        try:
            super()._save_best_checkpoint(runner, metrics)
            removed = self.file_backend.removed
        finally:
            self.file_backend = backend
        kept = {getattr(self, 'best_ckpt_path', None)}
        kept |= set(getattr(self, 'best_ckpt_path_dict', {}).values())
        outdated = set(removed) - kept
        if outdated:
            _when_written(runner, lambda: [_remove(path, backend) for path in outdated])
