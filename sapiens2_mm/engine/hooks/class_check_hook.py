"""Stop early if the classes of data, head and loss do not agree."""

from typing import Any

from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import nn

from sapiens2_mm.registry import HOOKS


@HOOKS.register_module()
class ClassCheckHook(Hook):
    """Compares the classes of a segmentation data set with the model when a run starts.

    Their number and the ignored label must be equal; without the check a difference
    shows as a failed gather on the device. Models without ``decode_head.num_classes``
    and data without ``classes`` are not checked.

    Raises:
        ValueError: naming both values, before the first iteration of training,
            validation or testing.
    """

    priority = 'VERY_HIGH'

    def before_train(self, runner: Runner) -> None:
        self._check(runner.model, runner.train_dataloader.dataset)
        if runner.val_loop is not None:
            self.before_val(runner)

    def before_val(self, runner: Runner) -> None:
        self._check(runner.model, runner.val_dataloader.dataset)

    def before_test(self, runner: Runner) -> None:
        self._check(runner.model, runner.test_dataloader.dataset)

    @staticmethod
    def _check(model: nn.Module, dataset: Any) -> None:
        while not hasattr(model, 'decode_head') and hasattr(model, 'module'):
            model = model.module  # of data parallelism or test-time augmentation
        head = getattr(model, 'decode_head', None)
        num_classes = getattr(head, 'num_classes', None)
        classes = dataset.metainfo.get('classes')
        if num_classes is None or classes is None:
            return
        if len(classes) != num_classes:
            raise ValueError(
                f'the data set has {len(classes)} classes, the head '
                f'num_classes={num_classes}; these numbers must be equal: set '
                'model.decode_head.num_classes, or the classes of the metainfo'
            )
        for ignored in _ignored_labels(dataset):
            if ignored != getattr(head, 'ignore_index', ignored):
                raise ValueError(
                    f'the data set ignores label {ignored}, the head '
                    f'{head.ignore_index}; set ignore_index of both, and of the '
                    'metric, to one value'
                )


def _ignored_labels(dataset: Any) -> set[int]:
    """``ignore_index`` of a data set, or of those it is made of."""
    if hasattr(dataset, 'ignore_index'):
        return {dataset.ignore_index}
    parts = getattr(dataset, 'datasets', [getattr(dataset, 'dataset', None)])
    return set().union(*(_ignored_labels(part) for part in parts if part is not None))
