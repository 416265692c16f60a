"""Runs in which the images of a batch turn into NaN on their way to the model."""

from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.runner import Runner


class BreakImages(Hook):
    """NaN in all images of the given iterations, which count from 1."""

    def __init__(self, *iterations: int) -> None:
        self.iterations = iterations

    def before_train(self, runner: Runner) -> None:
        model = runner.model.module if is_model_wrapper(runner.model) else runner.model

        def fill(module: Any, args: Any, data: dict) -> None:
            if model.training and runner.iter + 1 in self.iterations:
                many = data['inputs']
                for images in many if isinstance(many, list) else [many]:
                    images.fill_(float('nan'))

        model.data_preprocessor.register_forward_hook(fill)


def weights_of(path: str | Path) -> dict[str, torch.Tensor]:
    return torch.load(path, weights_only=False)['state_dict']


def stops_with_finite_weights(runner: Runner, loss: str, image: str) -> None:
    """From iteration 3 on all images are NaN: iteration 5 ends the run.

    The config saves at every iteration. What it saves in iterations 3 and 4 are the
    weights of iteration 2.
    """
    runner.register_hook(BreakImages(*range(3, 100)))
    message = rf'iteration 5 is not finite: .*{loss} is nan.* on .*{image}.*3 such iter'
    with pytest.raises(FloatingPointError, match=message):
        runner.train()
    work_dir = Path(runner.work_dir)
    saved = {path.stem: weights_of(path) for path in work_dir.glob('iter_*.pth')}
    assert set(saved) == {'iter_2', 'iter_3', 'iter_4'}
    trained = [name for name, p in runner.model.named_parameters() if p.requires_grad]
    for state in saved.values():
        assert all(value.isfinite().all() for value in state.values())
        assert all(state[name].equal(saved['iter_2'][name]) for name in trained)
