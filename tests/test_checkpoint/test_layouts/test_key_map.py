import pytest
import torch
from tiny_models import DEEP_ARCH, official

from sapiens2_mm.checkpoint import CheckpointError
from sapiens2_mm.checkpoint.layouts.key_map import KeyMap, Prefix, Rename, SplitRows
from sapiens2_mm.checkpoint.layouts.names import (
    official_to_ours,
    official_to_transformers,
    to_our_names,
)

MAP = KeyMap(
    'left',
    'right',
    [
        Rename('blocks.{n}.fc.{p}', 'layer.{n}.linear.{p}'),
        Rename('convs.{n*3}.weight', 'stages.{n}.weight'),
        SplitRows('blocks.{n}.w12.{p}', ('layer.{n}.gate.{p}', 'layer.{n}.up.{p}')),
        Prefix('decode_head.', 'head.'),
    ],
)


def test_both_directions_of_every_rule():
    left = {
        'blocks.11.fc.weight': torch.rand(2),
        'convs.6.weight': torch.rand(1),
        'blocks.0.w12.bias': torch.tensor([1.0, 2.0, 3.0, 4.0]),
        'decode_head.a.b': torch.rand(1),
    }
    right = MAP.forward(left)
    assert set(right) == {
        'layer.11.linear.weight', 'stages.2.weight', 'layer.0.gate.bias',
        'layer.0.up.bias', 'head.a.b',
    }  # fmt: skip
    assert right['layer.0.gate.bias'].tolist() == [1.0, 2.0]  # gate rows come first
    assert right['layer.0.up.bias'].tolist() == [3.0, 4.0]
    back = MAP.backward(right)
    assert set(back) == set(left)
    assert all(torch.equal(back[key], left[key]) for key in left)


def test_keys_of_no_rule_are_an_error():
    for key in ('blocks.x.fc.weight', 'blocks.1.fc.scale', 'convs.4.weight', 'other'):
        with pytest.raises(CheckpointError, match='are no left names') as error:
            MAP.forward({key: torch.rand(1)})
        assert key in str(error.value)
    with pytest.raises(CheckpointError, match='are no right names'):
        MAP.backward({'blocks.1.fc.weight': torch.rand(1)})
    with pytest.raises(CheckpointError, match=r"\['layer.0.up.bias'\] is missing"):
        MAP.backward({'layer.0.gate.bias': torch.rand(1)})


@pytest.mark.parametrize('task', ['pose', 'seg', 'normal', 'pointmap', 'matting'])
def test_layouts_of_every_task_are_bijective(task, build):
    state = official(build(task, arch=DEEP_ARCH))
    ours = official_to_ours(task).forward(state)
    assert set(ours) == set(build(task, arch=DEEP_ARCH).state_dict())
    assert set(official_to_ours(task).backward(ours)) == set(state)
    del state['backbone.rope_embed.periods']
    theirs = official_to_transformers(task).forward(state)
    back = official_to_transformers(task).backward(theirs)
    assert set(back) == set(state)
    assert all(torch.equal(back[key], state[key]) for key in state)
    assert set(to_our_names(theirs)) == set(ours) - {'backbone.rope_embed.periods'}


def test_files_of_others_keep_their_names():
    state = {
        'decode_head.conv_pose.weight': torch.zeros(1),
        'backbone.x': torch.zeros(1),
    }
    assert to_our_names(state) is state
    with pytest.raises(CheckpointError, match="no Sapiens2 model for 'albedo'"):
        official_to_transformers('albedo')
