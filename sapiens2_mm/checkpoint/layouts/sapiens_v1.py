"""What the names in files of the first Sapiens say.

The official names are those of our models but for the predictor: pose calls it
``final_layer``, every other task ``conv_seg``. Together with its channels it tells the
task, and with the task how the patches of the backbone were padded.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mmengine.logging import print_log
from torch import Tensor

from ..errors import CheckpointError


@dataclass(frozen=True)
class Predictor:
    """The last layer of a released model.

    Args:
        official: its name in the files.
        ours: its name in our models.
        channels: of its output; None for any number.
        patch_padding: of the backbone, see ``SapiensV1``.
    """

    official: str
    ours: str
    channels: int | None
    patch_padding: int | str


_PREDICTORS = (
    Predictor('head.final_layer.', 'head.conv_pose.', None, 2),
    Predictor('decode_head.conv_seg.', 'decode_head.conv_normal.', 3, 2),
    Predictor('decode_head.conv_seg.', 'decode_head.conv_depth.', 1, 'corner'),
    Predictor('decode_head.conv_seg.', 'decode_head.conv_seg.', 28, 'corner'),
)


def predictor_of(
    state: Mapping[str, Tensor], model_names: Iterable[str] | None = None
) -> Predictor | None:
    """The predictor of weights with official names or ours.

    Args:
        state: weights behind any prefix.
        model_names: weights of the model that is to be filled, which must have the
            predictor. Without, weights of heads with BatchNorm have none: such heads
            of the hosts use the same names.
    """
    if model_names is None and any(key.endswith('running_mean') for key in state):
        return None
    for found in _PREDICTORS:
        own = f'{found.ours}weight'
        if model_names is not None and not any(n.endswith(own) for n in model_names):
            continue
        for name in (found.official, found.ours):
            weights = [v for k, v in state.items() if k.endswith(f'{name}weight')]
            if any(found.channels in (None, len(weight)) for weight in weights):
                return found
    return None


def with_our_predictor(
    state: dict[str, Tensor], model_names: Iterable[str] | None = None
) -> dict[str, Tensor]:
    """The same weights with our name of the predictor; see ``predictor_of``."""
    found = predictor_of(state, model_names)
    if found is None:
        return state
    named = {key.replace(found.official, found.ours): v for key, v in state.items()}
    return state if named.keys() == state.keys() else named  # keeps what torch noted


def check_patch_padding(
    state: Mapping[str, Tensor],
    prefix: str,
    own: int | str,
    head_names: Iterable[str],
    source: str,
) -> None:
    """Compare how the patches of a file and of a model are padded.

    What torch writes of a model of ours says it beside the weights; other files say it
    by their predictor, if it is that of a released model. A backbone that is to get
    another head may change its padding: then, and where nothing tells, a warning says
    what the model has.

    Args:
        state: weights of the file, as they were read.
        prefix: what stands before the keys of its backbone.
        own: ``patch_padding`` of the model.
        head_names: weights of the model's head that the file fills.
        source: for messages.

    Raises:
        CheckpointError: if the file was made with another padding.
    """
    notes: Any = getattr(state, '_metadata', None) or {}
    padding = notes.get(prefix.removesuffix('.'), {}).get('patch_padding')
    if padding is None and (found := predictor_of(state, head_names or None)):
        padding = found.patch_padding
    if padding == own:
        return
    if padding is not None and head_names:
        raise CheckpointError(
            f'{source} was made with patch_padding={padding!r}, the backbone has '
            f'{own!r}; set model.backbone.patch_padding={padding!r}'
        )
    told = 'with an unknown' if padding is None else f'with {padding!r} as its'
    text = (
        f'{source} was made {told} patch_padding, which is no weight; the backbone '
        f'has {own!r}. With the wrong one every number differs: released models of '
        "pose and normals have 2, all others 'corner'"
    )
    print_log(text, logger='current', level=logging.WARNING)
