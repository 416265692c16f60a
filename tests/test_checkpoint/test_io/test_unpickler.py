"""Hostile and honest pickles."""

import collections
import os
import pathlib
import pickle
import re
import zipfile

import numpy as np
import pytest
import torch
from hostile_pickles import HOSTILE, MARKER, Calls, RawPickler, save_raw
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer, MessageHub
from mmengine.registry import OPTIMIZERS, PARAM_SCHEDULERS

from sapiens2_mm.checkpoint import CheckpointError, read_checkpoint


@pytest.mark.parametrize('name', HOSTILE)
@pytest.mark.parametrize('form', ('zip', 'legacy', 'bare'))
def test_hostile_file_is_refused_by_name(name, form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    payload, message = HOSTILE[name]
    entries = {'state_dict': {'w': torch.ones(2)}, 'message_hub': payload}
    path = tmp_path / 'hostile.pth'
    if form == 'bare':
        with open(path, 'wb') as file:
            RawPickler(file, protocol=2).dump({'message_hub': payload})
    else:
        save_raw(entries, path, form)
    methods = dict(HistoryBuffer._statistics_methods)
    with pytest.raises(CheckpointError, match=message) as error:
        read_checkpoint(path)
    assert 'was not loaded' in str(error.value)
    assert 'hostile.pth' in str(error.value)
    assert not (tmp_path / MARKER).exists()
    assert HistoryBuffer._statistics_methods == methods


def test_statistics_methods_of_a_file_are_not_taken_over(tmp_path):
    buffer = HistoryBuffer([1.0, 3.0], [1, 1])
    buffer.__dict__.update(
        max_length=5,
        mean='shadow',
        extra=1,
        _statistics_methods={'mean': 'not a function'},
    )
    torch.save({'w': torch.ones(1), 'h': buffer}, tmp_path / 'a.pth')
    history = read_checkpoint(tmp_path / 'a.pth')['state_dict']['h']
    assert type(history) is HistoryBuffer
    assert history.mean() == 2.0
    assert history.max_length == 5
    assert set(vars(history)) == {'max_length', '_log_history', '_count_history'}
    assert callable(HistoryBuffer._statistics_methods['mean'])


def test_hooks_of_tensors_are_dropped(tmp_path):
    weight = torch.ones(2, requires_grad=True)
    weight._backward_hooks = collections.OrderedDict({0: 'hook'})
    with pytest.warns(UserWarning, match='backward hook'):
        torch.save({'w': weight}, tmp_path / 'a.pth')
    assert not read_checkpoint(tmp_path / 'a.pth')['state_dict']['w']._backward_hooks


@pytest.mark.parametrize('protocol', (2, 4))
@pytest.mark.parametrize('zipped', (True, False))
def test_honest_values_survive(protocol, zipped, tmp_path):
    hub = MessageHub.get_instance(f'honest{protocol}{zipped}')
    hub.update_scalar('train/loss', 0.5)
    hub.update_scalar('train/loss', 1.5)
    hub.update_info('best_score', np.float64(0.25))
    metadata = torch.nn.Linear(2, 2).state_dict()
    meta = dict(
        iter=3,
        text='\u4eba',
        dataset_meta=ConfigDict(
            sigmas=np.array([0.1, 0.2], np.float32), classes=('a',)
        ),
        names=np.array(['left', 'right']),
        empty=np.array([], np.uint8),
        flags=np.array([True, False]),
        count=np.int64(7),
        ids={1, 2},
        path=pathlib.Path('work_dirs/a'),
        more=collections.defaultdict(list, a=[1]),
        order=collections.OrderedDict(b=1, a=2),
        value=1 + 2j,
        none=None,
    )
    entries = dict(
        state_dict=metadata,
        message_hub=hub.state_dict(),
        meta=meta,
        parameter=torch.nn.Parameter(torch.ones(2)),
        half=torch.ones(3, dtype=torch.bfloat16),
        view=torch.arange(6).view(2, 3).t(),
        device=torch.device('cpu'),
        dtype=torch.float16,
        size=torch.Size([1, 2]),
    )
    torch.save(
        entries,
        tmp_path / 'a.pth',
        pickle_protocol=protocol,
        _use_new_zipfile_serialization=zipped,
    )
    result = read_checkpoint(tmp_path / 'a.pth')
    history = result['message_hub']['log_scalars']['train/loss']
    assert type(history) is HistoryBuffer
    assert history.mean() == 1.0
    assert history.statistics('max') == 1.5
    MessageHub.get_instance(f'again{protocol}{zipped}').load_state_dict(
        result['message_hub']
    )
    score = result['message_hub']['runtime_info']['best_score']
    assert score == 0.25 and type(score) is np.float64
    assert result['state_dict']._metadata == metadata._metadata
    read = result['meta']
    assert type(read['dataset_meta']) is ConfigDict
    assert read['dataset_meta'].sigmas.dtype == np.float32
    assert read['names'].tolist() == ['left', 'right']
    assert read['path'] == 'work_dirs/a'
    assert read['more'] == {'a': [1]}
    assert read['empty'].shape == (0,) and read['empty'].dtype == np.uint8
    for key in ('iter', 'text', 'count', 'ids', 'order', 'value', 'none'):
        assert read[key] == meta[key]
    assert torch.equal(result['view'], entries['view'])
    assert result['half'].dtype == torch.bfloat16
    assert isinstance(result['parameter'], torch.nn.Parameter)
    for key in ('device', 'dtype', 'size'):
        assert result[key] == entries[key]
    torch.save(result, tmp_path / 'b.pth')  # plain classes again
    data = zipfile.ZipFile(tmp_path / 'b.pth').read('b/data.pkl')
    assert b'sapiens2_mm' not in data


def equal(one, other) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    return type(one) is type(other) and one == other


def read_back(state, path):
    torch.save({'state_dict': {'w': torch.ones(1)}, 'state': state}, path)
    return read_checkpoint(path)['state']


SCHEDULER_OPTIONS = dict(
    CosineAnnealing=dict(T_max=4),
    CosineRestart=dict(periods=[2, 3], restart_weights=[1, 0.5], eta_min=0),
    Exponential=dict(gamma=0.5),
    MultiStep=dict(milestones=[2, 3]),
    OneCycle=dict(eta_max=0.1, total_steps=10),
    ReduceOnPlateau=dict(monitor='loss'),
    Step=dict(step_size=2),
)


@pytest.mark.parametrize('name', sorted(PARAM_SCHEDULERS.module_dict))
def test_every_scheduler_is_read_back(name, tmp_path):
    kind = re.sub('(LR|Momentum|ParamScheduler)$', '', name)
    options = dict(SCHEDULER_OPTIONS.get(kind, {}))
    if name.endswith('ParamScheduler'):
        options['param_name'] = 'lr'
    parameters = torch.nn.Linear(3, 2).parameters()
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    scheduler = PARAM_SCHEDULERS.get(name)(optimizer, **options)
    state = scheduler.state_dict()
    assert equal(read_back(state, tmp_path / 'a.pth'), state)


def test_every_optimizer_is_read_back(tmp_path):
    tried = []
    for name, build in OPTIMIZERS.module_dict.items():
        layer = torch.nn.Linear(3, 2, bias=False)
        layer(torch.ones(1, 3)).sum().backward()
        try:
            optimizer = build(layer.parameters(), lr=0.1)
            optimizer.step(lambda: 0.0) if name == 'LBFGS' else optimizer.step()
        except (TypeError, ValueError, RuntimeError):
            continue  # needs other arguments, other gradients or several processes
        state = optimizer.state_dict()
        assert equal(read_back(state, tmp_path / 'a.pth'), state), name
        tried.append(name)
    assert {'SGD', 'AdamW', 'Adagrad', 'Rprop', 'RMSprop'} <= set(tried), tried


def test_torch_load_is_not_patched(tmp_path):
    torch.save(Calls(os.path.join, 'a', 'b'), tmp_path / 'a.pth')
    assert torch.load(tmp_path / 'a.pth', weights_only=False) == os.path.join('a', 'b')
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / 'a.pth', weights_only=True)
