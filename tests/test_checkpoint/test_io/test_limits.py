"""Values that would take time or memory without bound, in files of torch."""

import pickle

import pytest
import torch
from hostile_pickles import Raw, save_raw
from hostile_values import NESTED, NEW_SET, ODD, TENSORS

from sapiens2_mm.checkpoint import CheckpointError, read_checkpoint
from sapiens2_mm.checkpoint.io.limits import Budget, check_keys, check_nesting

VALUES = {**NESTED, **ODD, **TENSORS}
SLOW = {name for name in VALUES if name.startswith(('deep', 'long numbers'))}


@pytest.mark.parametrize('form', ('zip', 'legacy'))
@pytest.mark.parametrize('name', sorted(VALUES.keys() - SLOW))
def test_value_is_refused_in_a_short_message(name, form, tmp_path):
    content = {'w': torch.ones(2, 2)[:1], 'more': Raw(VALUES[name])}
    save_raw(content, tmp_path / 'a.pth', form)
    with pytest.raises(CheckpointError) as error:
        read_checkpoint(tmp_path / 'a.pth')
    assert len(str(error.value)) < 1000


def test_budget_follows_the_size_of_the_file():
    small, large = Budget(0), Budget(10**9)
    small.spend(600_000)
    large.spend(10_600_000)
    for budget in (small, large):
        with pytest.raises(pickle.UnpicklingError, match='takes more than'):
            budget.spend(1)
    weights = Budget(4_000_000)
    assert weights.spend_on_tensor((1000, 1000), 4) == 1_000_000
    weights.spend_on_tensor((1000, 1000), 4)  # tied
    with pytest.raises(pickle.UnpicklingError, match='larger than the file'):
        weights.spend_on_tensor((1000, 1000), 4)


def test_a_set_costs_as_much_as_three_values(tmp_path):
    """An empty one takes 216 bytes; at the price of a list they filled the memory."""
    sets = Raw(b'](' + NEW_SET * 300_000 + b'e')
    save_raw({'more': sets}, tmp_path / 'a.pth', 'zip')
    with pytest.raises(CheckpointError, match=r'takes more than 60[0-9]{4} operations'):
        read_checkpoint(tmp_path / 'a.pth')


def test_keys_and_nesting():
    check_keys(['a', 5, True, None])
    for key in ((), 0.5, b'a', 1 << 70):
        with pytest.raises(pickle.UnpicklingError, match='a key that is a'):
            check_keys([key])
    shared = [1, 2, 3]
    check_nesting({'a': shared, 'b': [shared]}, 14)
    with pytest.raises(pickle.UnpicklingError, match='again and again'):
        check_nesting({'a': shared, 'b': [shared]}, 13)
    deep = shared
    for _ in range(70):
        deep = [deep]
    with pytest.raises(pickle.UnpicklingError, match='nest over 64'):
        check_nesting(deep, 1000)
