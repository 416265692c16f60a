"""Stop early if the numbers of keypoints, sigmas and heatmaps do not agree."""

from typing import Any

from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.runner import Runner

from sapiens2_mm.registry import HOOKS


def check_keypoint_counts(
    table: str, num_keypoints: int, num_sigmas: int, out_channels: int
) -> None:
    """Raise a ``ValueError`` that names the three numbers unless they are equal."""
    if not num_keypoints == num_sigmas == out_channels:
        raise ValueError(
            f'the keypoint table {table} has {num_keypoints} keypoints and '
            f'{num_sigmas} sigmas, the head has out_channels={out_channels}; these '
            "numbers must be equal: correct the dataset's metainfo or set "
            'model.head.out_channels'
        )


def check_keypoint_config(cfg: dict[str, Any]) -> None:
    """Compare the counts that a config spells out, before anything is built.

    Looks at the keypoint tables given as ``metainfo`` of a data loader's dataset. What
    only the built objects know is left to ``KeypointCheckHook``.

    Raises:
        ValueError: see ``check_keypoint_counts``.
    """
    out_channels = (cfg.get('model', {}).get('head') or {}).get('out_channels')
    for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        table = ((cfg.get(name) or {}).get('dataset') or {}).get('metainfo') or {}
        if out_channels is not None and {'keypoint_info', 'sigmas'} <= set(table):
            check_keypoint_counts(
                table.get('dataset_name'),
                len(table['keypoint_info']),
                len(table['sigmas']),
                out_channels,
            )


@HOOKS.register_module()
class KeypointCheckHook(Hook):
    """Compares keypoint table, sigmas and head when a run starts.

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
        if out_channels is not None and 'num_keypoints' in meta:
            check_keypoint_counts(
                meta.get('dataset_name'),
                meta['num_keypoints'],
                len(meta['sigmas']),
                out_channels,
            )
