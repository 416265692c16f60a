"""mmengine's runner for strategies, in the order that hooks know."""

from typing import Any

from mmengine.hooks import EMAHook
from mmengine.runner import FlexibleRunner

from sapiens2_mm.registry import RUNNERS


@RUNNERS.register_module()
class StrategyRunner(FlexibleRunner):
    """mmengine's ``FlexibleRunner``, which a config with ``strategy`` gets.

    As with ``Runner`` the model is built at once, and ``before_run`` of hooks comes
    before weights are drawn or loaded. ``FlexibleRunner`` gives loops and hooks the
    config of the model in its place, and calls ``before_run`` when a checkpoint, which
    hooks choose then, has been loaded.

    Raises:
        ValueError: for mmengine's ``EMAHook``, whose copy of the model would be whole
            in each process.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if any(isinstance(hook, EMAHook) for hook in self.hooks):
            raise ValueError(
                'StrategyRunner: EMAHook keeps a whole copy of the model, for which '
                'sharded training has no room; remove it, or train without strategy'
            )
        self.model = self.strategy.build_model(self.model)

    def train(self) -> Any:
        # A file that is resumed from has all weights.
        draws = dict(init_weights_for_test_or_val=not self._resume)
        self.strategy.dispatch_kwargs.update(draws)
        self._begin(self.train_loop, self.val_loop)
        return super().train()

    def val(self) -> dict:
        self._begin(self.val_loop)
        return super().val()

    def test(self) -> dict:
        self._begin(self.test_loop)
        return super().test()

    def _begin(self, *loops: Any) -> None:
        """Call ``before_run`` when the loops have been built, which the caller does."""
        super().call_hook('before_run')

    def call_hook(self, fn_name: str, **kwargs: Any) -> None:
        if fn_name != 'before_run':
            super().call_hook(fn_name, **kwargs)
