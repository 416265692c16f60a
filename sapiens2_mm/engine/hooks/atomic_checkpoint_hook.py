"""Checkpoints that are complete or not there."""

from pathlib import Path
from typing import Any

from mmengine.dist import is_main_process
from mmengine.fileio import LocalBackend, register_backend
from mmengine.hooks import CheckpointHook
from mmengine.runner import Runner

from sapiens2_mm.checkpoint.io.atomic import write_atomically
from sapiens2_mm.registry import HOOKS

_BACKEND = 'sapiens2_mm.atomic'


class AtomicLocalBackend(LocalBackend):
    """mmengine's local files, written by ``write_atomically``."""

    def put(self, obj: bytes, filepath: str | Path) -> None:
        write_atomically(filepath, obj)

    def put_text(self, obj: str, filepath: str | Path, encoding: str = 'utf-8') -> None:
        write_atomically(filepath, obj.encode(encoding))


register_backend(_BACKEND, AtomicLocalBackend, force=True)


class _RemovesLater:
    """A file backend that only notes what to remove."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.removed: list[str] = []

    def remove(self, filepath: str) -> None:
        self.removed.append(filepath)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)


@HOOKS.register_module()
class AtomicCheckpointHook(CheckpointHook):
    """mmengine's ``CheckpointHook`` for runs that may be killed at any moment.

    Checkpoints and ``last_checkpoint`` appear complete under their final names, and an
    old checkpoint is removed only when the new one is on the disk; mmengine writes in
    place and removes first. All arguments are those of ``CheckpointHook``; with
    ``backend_args`` or a remote ``out_dir`` the writing is left to that storage.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        is_local = self.out_dir is None or '://' not in str(self.out_dir)
        if is_local and self.backend_args is None and self.file_client_args is None:
            self.backend_args = dict(backend=_BACKEND)

    def before_train(self, runner: Runner) -> None:
        super().before_train(runner)
        if self.backend_args == dict(backend=_BACKEND) and is_main_process():
            for leftover in Path(self.out_dir).glob('.*.pth.*.tmp'):
                leftover.unlink()

    def _save_checkpoint_with_step(self, runner: Runner, step: int, meta: dict) -> None:
        outdated = None
        if self.max_keep_ckpts > 0 and (
            not self.keep_ckpt_ids or self.keep_ckpt_ids[-1] != step
        ):
            if len(self.keep_ckpt_ids) == self.max_keep_ckpts:
                outdated = self.keep_ckpt_ids.popleft()
            self.keep_ckpt_ids.append(step)
            runner.message_hub.update_info('keep_ckpt_ids', list(self.keep_ckpt_ids))
        name = self.filename_tmpl.format(step)
        self.last_ckpt = self.file_backend.join_path(self.out_dir, name)
        runner.message_hub.update_info('last_ckpt', self.last_ckpt)
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
        if not is_main_process():
            return
        write_atomically(
            Path(runner.work_dir, 'last_checkpoint'), self.last_ckpt.encode()
        )
        if outdated is not None:
            name = self.filename_tmpl.format(outdated)
            path = self.file_backend.join_path(self.out_dir, name)
            if self.file_backend.isfile(path):
                self.file_backend.remove(path)
            elif self.file_backend.isdir(path):  # written by deepspeed
                self.file_backend.rmtree(path)

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
        for path in set(removed) - kept:
            backend.remove(path)
