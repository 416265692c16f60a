"""A step on tensors that have a shape and no memory.

Any size can be built on any machine in seconds, and every operation is the one that
the CPU would run.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from mmengine.config import Config
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sapiens2_mm.registry import MODELS

Views = list[tuple[int, tuple[int, int]]]  # of an image: number and (height, width)


class _AnswerOne(TorchDispatchMode):
    """Answers 1 where Python asks for a value; there is none."""

    def __torch_dispatch__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            return 1
        return func(*args, **(kwargs or {}))


@contextmanager
def dry_run() -> Iterator[None]:
    """While active, new tensors of the CPU have no memory."""
    with (
        warnings.catch_warnings(),
        FakeTensorMode(allow_non_fake_inputs=True),
        _AnswerOne(),
    ):
        # The key of a cache of rotary tables; nothing is read at the address.
        warnings.filterwarnings('ignore', 'Accessing the data pointer of FakeTensor')
        yield


def build_model(model_cfg: dict) -> nn.Module:
    """The model of a config in training mode; keeps all activations."""
    model = MODELS.build(model_cfg).train()
    if hasattr(model, 'restart'):
        model.restart()  # counters that the host knows
    return model


def views_of(cfg: Config) -> Views:
    """What the model gets of an image: the views of ``MultiViewCrop``, or the image.

    Raises:
        ValueError: if the config says neither.
    """
    views = _find(cfg.get('train_dataloader') or {}, 'views')
    if views:
        return [(view['num_views'], tuple(view['size'])) for view in views]
    size = _find(cfg.get('model') or {}, 'img_size')
    if not size:
        raise ValueError('the config has no backbone.img_size; give the backbone one')
    return [(1, (size, size) if isinstance(size, int) else tuple(size))]


def make_inputs(views: Views, batch_size: int) -> Tensor | list[Tensor]:
    """Normalized images, (B, 3, H, W), or one such tensor per view."""
    inputs = [
        torch.empty(batch_size, 3, *size)
        for number, size in views
        for _ in range(number)
    ]
    return inputs if len(inputs) > 1 else inputs[0]


def loss_of(model: nn.Module, inputs: Tensor | list[Tensor]) -> Tensor:
    """A loss of the batch: of pretraining its own, of tasks a square.

    The targets of a task have no part in products and take little memory.
    """
    mode = 'loss' if isinstance(inputs, list) else 'tensor'
    outputs = model(inputs, None, mode=mode)
    return sum(
        out.float().square().mean() for out in tree_leaves(outputs) if out.requires_grad
    )


def _find(node: Any, key: str) -> Any:
    """The first value of that name below a config's node, or None."""
    if isinstance(node, dict):
        if node.get(key):
            return node[key]
        node = list(node.values())
    found = (_find(child, key) for child in node) if isinstance(node, list) else ()
    return next((value for value in found if value), None)
