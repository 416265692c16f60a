"""Stop early if the numbers of classes of data, head and loss do not agree."""

from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import nn

from sapiens2_mm.registry import HOOKS


@HOOKS.register_module()
class ClassCheckHook(Hook):
    """Compares the classes of a segmentation data set with the model when a run starts.

    Without it a wrong number shows as a failed gather on the device. Models without
    ``decode_head.num_classes`` and data without ``classes`` are not checked.

    Raises:
        ValueError: naming the numbers, before the first iteration of training,
            validation or testing.
    """

    priority = 'VERY_HIGH'

    def before_train(self, runner: Runner) -> None:
        self._check(runner.model, runner.train_dataloader.dataset.metainfo)
        if runner.val_loop is not None:
            self.before_val(runner)

    def before_val(self, runner: Runner) -> None:
        self._check(runner.model, runner.val_dataloader.dataset.metainfo)

    def before_test(self, runner: Runner) -> None:
        self._check(runner.model, runner.test_dataloader.dataset.metainfo)

    @staticmethod
    def _check(model: nn.Module, meta: dict) -> None:
        while not hasattr(model, 'decode_head') and hasattr(model, 'module'):
            model = model.module  # of data parallelism or test-time augmentation
        num_classes = getattr(getattr(model, 'decode_head', None), 'num_classes', None)
        classes = meta.get('classes')
        if num_classes is None or classes is None:
            return
        if len(classes) != num_classes:
            raise ValueError(
                f'the data set has {len(classes)} classes, the head '
                f'num_classes={num_classes}; these numbers must be equal: set '
                'model.decode_head.num_classes, or the classes of the metainfo'
            )
