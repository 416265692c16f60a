"""Training loop that continues without reading old data again."""

from mmengine.dist import broadcast_object_list
from mmengine.model import is_model_wrapper
from mmengine.runner import IterBasedTrainLoop, Runner
from mmengine.runner.loops import _InfiniteDataloaderIterator
from torch.utils.data import DataLoader

from sapiens2_mm.registry import LOOPS


@LOOPS.register_module()
class SeekingTrainLoop(IterBasedTrainLoop):
    """Iteration-based training that resumes its data by seeking.

    mmengine's loop loads and drops all batches that a resumed run has already used.
    Here the sampler (``DrawSampler``) begins at the right place, or the dataset
    (``TarShardDataset``), to which ``PretrainDataHook`` gives its positions.

    A dataset, a sampler, and a model's ``mask_generator`` whose ``seed`` is None get
    the one of the run, in a resumed run that of its checkpoint; another seed stays.
    Steps of the pipeline with a method ``follow`` (``DrawTokenMasks``) get the model.

    Args: as mmengine's ``IterBasedTrainLoop``.

    Raises:
        TypeError: on resuming with data that cannot seek.
    """

    def __init__(
        self, runner: Runner, dataloader: DataLoader | dict, *args, **kwargs
    ) -> None:
        if isinstance(dataloader, dict):
            # diff_rank_seed: mmengine gives the sampler no seed, whatever the config's
            dataloader = runner.build_dataloader(
                dataloader, seed=runner.seed, diff_rank_seed=True
            )
        model = runner.model.module if is_model_wrapper(runner.model) else runner.model
        self._unseeded = [
            part
            for part in (
                dataloader.dataset,
                dataloader.sampler,
                getattr(model, 'mask_generator', None),
            )
            if getattr(part, 'seed', 0) is None
        ]
        self._hand_on_seed(runner)  # before loader workers start
        pipeline = getattr(dataloader.dataset, 'pipeline', None)
        for step in getattr(pipeline, 'transforms', ()):
            if hasattr(step, 'follow'):
                step.follow(model)
        super().__init__(runner, dataloader, *args, **kwargs)

    def _hand_on_seed(self, runner: Runner) -> None:
        seed = [runner.seed]
        broadcast_object_list(seed)  # with diff_rank_seed each process has its own
        for part in self._unseeded:
            part.seed = seed[0]

    def run(self) -> None:
        """Train."""
        if self._iter > 0:
            self._seek()  # before RandomStateHook: a new iterator draws a number
        self.runner.call_hook('before_train')
        self.runner.call_hook('before_train_epoch')
        while self._iter < self._max_iters and not self.stop_training:
            self.runner.model.train()
            self.run_iter(next(self.dataloader_iterator))
            self._decide_current_val_interval()
            if self._validates_now():
                self.runner.val_loop.run()
        self.runner.call_hook('after_train_epoch')
        self.runner.call_hook('after_train')
        return self.runner.model

    def _validates_now(self) -> bool:
        due = self._iter % self.val_interval == 0 or self._iter == self._max_iters
        return self.runner.val_loop is not None and self._iter >= self.val_begin and due

    def _seek(self) -> None:
        self._hand_on_seed(self.runner)
        loader = self.dataloader
        if hasattr(loader.sampler, 'seek'):
            loader.sampler.seek(self._iter * loader.batch_size)
        elif not hasattr(loader.dataset, 'seek'):
            raise TypeError(
                'SeekingTrainLoop: cannot continue the data of '
                f'{type(loader.dataset).__name__} with {type(loader.sampler).__name__};'
                ' use sapiens2_mm.DrawSampler, or train with by_epoch=False and '
                "without this loop's type"
            )
        # The iterator that the constructor made has begun at the start of the data, and
        # its workers, which a loader may keep, hold the dataset as it was then.
        self.dataloader_iterator = loader._iterator = None
        self.dataloader_iterator = _InfiniteDataloaderIterator(loader)
