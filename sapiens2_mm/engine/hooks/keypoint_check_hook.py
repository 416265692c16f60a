"""Stop before the first iteration if keypoint counts do not agree."""

from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.runner import Runner

from sapiens2_mm.registry import HOOKS


@HOOKS.register_module()
class KeypointCheckHook(Hook):
    """Compares keypoint table, sigmas, flip table and head when a run starts.

    Without it a wrong number shows as a broadcast error in the first loss, or after
    the first epoch in the metric. Models without ``head.out_channels`` are not
    checked.

    Raises:
        ValueError: naming the numbers, before the first iteration of training,
            validation or testing.
    """

    priority = 'VERY_HIGH'

    def before_train(self, runner: Runner) -> None:
        self._check(runner, runner.train_dataloader.dataset.metainfo)
        if runner.val_loop is not None:
            self.before_val(runner)

    def before_val(self, runner: Runner) -> None:
        self._check(runner, runner.val_dataloader.dataset.metainfo)

    def before_test(self, runner: Runner) -> None:
        self._check(runner, runner.test_dataloader.dataset.metainfo)

    @staticmethod
    def _check(runner: Runner, meta: dict) -> None:
        model = runner.model.module if is_model_wrapper(runner.model) else runner.model
        out_channels = getattr(getattr(model, 'head', None), 'out_channels', None)
        if out_channels is None or 'num_keypoints' not in meta:
            return
        counts = [meta['num_keypoints'], len(meta['sigmas']), len(meta['flip_indices'])]
        if any(count != out_channels for count in counts):
            raise ValueError(
                f'the keypoint table {meta.get("dataset_name")} has {counts[0]} '
                f'keypoints, {counts[1]} sigmas and {counts[2]} flip indices, the head '
                f'has out_channels={out_channels}; these numbers must be equal: set '
                "model.head.out_channels or the dataset's metainfo"
            )
