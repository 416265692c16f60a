"""Keeps account of the images of a pretraining run."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mmengine import dist
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch.utils.data import DataLoader

from sapiens2_mm.datasets.pretrain.skipping import describe_skip
from sapiens2_mm.registry import HOOKS

_REASONS, _POSITIONS = 'skip_reasons', 'shard_positions'
_NUM_SHOWN = 20


@HOOKS.register_module()
class PretrainDataHook(Hook):
    """Names unusable images at the end, and remembers the place in a stream of shards.

    Unusable images and shards are counted once each. While training, the log shows the
    number of one process as ``skipped_images``; at the end that of all processes and
    the first 20 messages. All are written to ``unusable_images.txt`` in the log folder,
    those from before a resume too.

    The first iteration logs the memory of a loader worker: views stay 8-bit until they
    are on the device, a worker makes one batch and keeps ``prefetch_factor`` ready.

    For data with a ``seek`` method (``TarShardDataset``) the positions of all readers
    are stored in every checkpoint and handed back on resume. With several processes
    this needs ``AtomicCheckpointHook``.
    """

    priority = 'NORMAL'  # before the checkpoint is written

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}  # by name of the image
        self.positions: list[tuple[int, int]] = []  # of this process's readers
        self.of_all: dict[str, Any] = {}  # what a checkpoint gets
        self.reported = False

    def before_train(self, runner: Runner) -> None:
        loader = runner.train_dataloader
        if not self.positions and hasattr(loader.dataset, 'seek'):
            self.positions = [(0, 0)] * max(1, loader.num_workers)

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: dict | None = None,
        outputs: dict | None = None,
    ) -> None:
        if not self.reported:
            self.reported = True
            runner.logger.info(worker_memory(runner.train_dataloader, data_batch))
        samples = data_batch['data_samples']
        for sample in samples:
            for name, reason in sample.get('skipped', ()):
                self.reasons.setdefault(name, reason)
        runner.message_hub.update_scalar('train/skipped_images', len(self.reasons))
        if self.positions:
            reader, *position = samples[-1].position
            self.positions[reader] = tuple(position)

    def before_save_in_all_processes(self, runner: Runner) -> None:
        """Collect the parts of a checkpoint; ``AtomicCheckpointHook`` calls this."""
        parts = dist.all_gather_object((self.reasons, self.positions))
        self.of_all = {_REASONS: _merge(reasons for reasons, _ in parts)}
        if self.positions:
            self.of_all[_POSITIONS] = [positions for _, positions in parts]

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        if runner.world_size == 1:  # any hook may write it
            self.before_save_in_all_processes(runner)
        checkpoint.update(self.of_all)

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Seek, if the run is being continued.

        Raises:
            ValueError: if the number of processes has changed.
        """
        if not runner._resume:
            return
        rank, world_size = dist.get_dist_info()
        if rank == 0:
            self.reasons = dict(checkpoint.get(_REASONS, {}))
        dataset = runner.train_dataloader.dataset
        if not hasattr(dataset, 'seek'):
            return
        positions = checkpoint.get(_POSITIONS)
        if positions is None:
            runner.logger.warning(
                'the checkpoint does not say how far the run had read its shards; they '
                'are read from the beginning'
            )
            return
        if len(positions) != world_size:
            raise ValueError(
                f'PretrainDataHook: the run to continue had {len(positions)} processes,'
                f' this one has {world_size}; start as many, or begin a new run with '
                'load_from'
            )
        self.positions = [tuple(position) for position in positions[rank]]
        dataset.seek(self.positions, checkpoint['meta']['iter'])

    def after_train(self, runner: Runner) -> None:
        reasons = _merge(dist.all_gather_object(self.reasons))
        if not reasons or dist.get_rank() > 0:
            return
        messages = [describe_skip(*item) for item in sorted(reasons.items())]
        path = Path(runner.log_dir) / 'unusable_images.txt'
        path.write_text('\n'.join(messages) + '\n', encoding='utf-8')
        shown = '\n  '.join(messages[:_NUM_SHOWN])
        runner.logger.warning(
            f'{len(messages)} images could not be used and were replaced; all are '
            f'named in {path}:\n  {shown}'
        )


def worker_memory(loader: DataLoader, data_batch: dict) -> str:
    """One line about the memory of a batch and of each worker that makes them."""
    views = data_batch['inputs']
    batch = sum(view.nbytes for view in views) / 1e6
    kinds = ', '.join(sorted({str(view.dtype) for view in views}))
    text = (
        f'{len(views[0])} samples of {len(views)} views are {batch:.0f} MB ({kinds}, '
        f'{batch / len(views[0]):.0f} MB each)'
    )
    if not loader.num_workers:
        return text
    held = 1 + loader.prefetch_factor
    return (
        f'{text}; each of {loader.num_workers} loader workers holds up to {held} such '
        f'batches, {held * batch:.0f} MB: lower prefetch_factor, num_workers or '
        'batch_size of train_dataloader if that is too much'
    )


def _merge(parts: Iterable[dict[str, str]]) -> dict[str, str]:
    return {name: reason for part in parts for name, reason in part.items()}
