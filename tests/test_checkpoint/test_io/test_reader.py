import json
import random
import shutil

import pytest
import torch
from mmengine.runner.checkpoint import CheckpointLoader, load_checkpoint
from safetensors.torch import save_file

from sapiens2_mm.checkpoint import CheckpointError, read_checkpoint

STATE = {'a.weight': torch.arange(6.0).view(2, 3), 'a.bias': torch.ones(2)}


def same(state) -> bool:
    return set(state) == set(STATE) and all(
        torch.equal(state[k], STATE[k]) for k in STATE
    )


@pytest.fixture
def files(tmp_path):
    """A file of every form."""
    save_file(STATE, tmp_path / 'plain.safetensors', metadata={'arch': 'x'})
    shutil.copy(tmp_path / 'plain.safetensors', tmp_path / 'misnamed.pth')
    torch.save(STATE, tmp_path / 'plain.pth')
    torch.save(STATE, tmp_path / 'old.pth', _use_new_zipfile_serialization=False)
    for wrapper in ('state_dict', 'model', 'teacher', 'model_state_dict', 'module'):
        torch.save({wrapper: STATE, 'epoch': 3}, tmp_path / f'{wrapper}.pth')
    torch.save({'state_dict': {'model': STATE}}, tmp_path / 'nested.pth')
    torch.save({'model': {'teacher': STATE}}, tmp_path / 'nested2.pth')
    folder = tmp_path / '\u0442\u0435\u0441\u0442 \xe9'
    folder.mkdir()
    torch.save(STATE, folder / '\u4eba 1.pth')
    save_file(STATE, folder / '\u4eba 1.safetensors')
    sharded = tmp_path / 'sharded'
    sharded.mkdir()
    for number, key in enumerate(STATE):
        save_file({key: STATE[key]}, sharded / f'm-{number}.safetensors')
    shards = {key: f'm-{number}.safetensors' for number, key in enumerate(STATE)}
    index = {'metadata': {}, 'weight_map': shards}
    (sharded / 'm.safetensors.index.json').write_text(json.dumps(index))
    return tmp_path


FORMS = [
    'plain.safetensors', 'misnamed.pth', 'plain.pth', 'old.pth', 'state_dict.pth',
    'model.pth', 'teacher.pth', 'model_state_dict.pth', 'module.pth', 'nested.pth',
    'nested2.pth', '\u0442\u0435\u0441\u0442 \xe9/\u4eba 1.pth',
    '\u0442\u0435\u0441\u0442 \xe9/\u4eba 1.safetensors', 'sharded',
    'sharded/m.safetensors.index.json',
]  # fmt: skip


@pytest.mark.parametrize('name', FORMS)
def test_every_form_is_read_by_us_and_by_mmengine(name, files):
    result = read_checkpoint(files / name)
    assert same(result['state_dict'])
    assert isinstance(result['meta'], dict)
    assert same(CheckpointLoader.load_checkpoint(str(files / name))['state_dict'])
    model = torch.nn.ModuleDict({'a': torch.nn.Linear(3, 2)})
    load_checkpoint(model, str(files / name), strict=True)
    assert same(model.state_dict())


def test_meta_of_a_weight_file(files):
    meta = read_checkpoint(files / 'plain.safetensors')['meta']
    assert meta == {'arch': 'x'}
    assert meta.get('dataset_meta') is None
    for name in ('plain.safetensors', 'plain.pth'):
        with pytest.raises(CheckpointError, match=f'resume from .*{name}.*load_from'):
            read_checkpoint(files / name)['meta']['epoch']


def test_map_location(files):
    for name in ('plain.safetensors', 'plain.pth'):
        for location in (None, 'cpu', torch.device('cpu'), lambda s, _: s):
            assert same(read_checkpoint(files / name, location)['state_dict'])
    state = read_checkpoint(files / 'plain.pth', 'meta')['state_dict']
    assert state['a.bias'].is_meta


def test_missing_and_empty_sources(tmp_path, files):
    with pytest.raises(FileNotFoundError, match=r'no\.pth does not exist'):
        read_checkpoint(tmp_path / 'no.pth')
    (tmp_path / 'run').mkdir()
    torch.save(STATE, tmp_path / 'run' / 'iter_1.pth')
    with pytest.raises(CheckpointError, match=r'0 safetensors files; name one file'):
        read_checkpoint(tmp_path / 'run')
    for address in ('s3://a/b.pth', 'HF://a/b'):
        with pytest.raises(CheckpointError, match=f'{address}: unknown kind of addr'):
            read_checkpoint(address)
    for content in ({}, {'meta': {}}, [1], {'state_dict': {}}, {'lr': 0.1}):
        torch.save(content, tmp_path / 'empty.pth')
        with pytest.raises(CheckpointError, match=r'empty\.pth holds no weights'):
            read_checkpoint(tmp_path / 'empty.pth')
    for content, what in (
        ([STATE], 'got a list$'),
        (torch.ones(2), 'got a Tensor$'),
        ({'state_dict': None, 'epoch': 1}, r"dict keys \['state_dict', 'epoch'\]"),
    ):
        torch.save(content, tmp_path / 'empty.pth')
        with pytest.raises(
            CheckpointError, match=f'expected a dict of tensors.*{what}'
        ):
            read_checkpoint(tmp_path / 'empty.pth')


def test_torch_file_named_safetensors_says_so(files):
    shutil.copy(files / 'plain.pth', files / 'a.safetensors')
    with pytest.raises(CheckpointError, match=r'of torch.save; rename it to \.pth'):
        read_checkpoint(files / 'a.safetensors')


def test_a_device_that_is_not_there_is_no_damage(files):
    for device in ('gpu', 'cuda:99'):
        with pytest.raises(RuntimeError) as error:
            read_checkpoint(files / 'plain.safetensors', device)
        assert 'damaged' not in str(error.value)


def test_memory_that_runs_out_is_no_damage(files, monkeypatch):
    def full(*args, **options):
        raise torch.OutOfMemoryError('CUDA out of memory')

    monkeypatch.setattr('sapiens2_mm.checkpoint.io.reader.safe_open', full)
    with pytest.raises(torch.OutOfMemoryError, match='CUDA out of memory'):
        read_checkpoint(files / 'plain.safetensors')


def test_broken_index_files(files):
    path = files / 'sharded' / 'm.safetensors.index.json'
    index = json.loads(path.read_text())

    def expect(message, text):
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        with pytest.raises(CheckpointError, match=message):
            read_checkpoint(path)

    expect('damaged or no checkpoint', '{"weight_map": ')
    expect('no "weight_map"', [])
    expect('no "weight_map"', {'weight_map': 1})
    expect('names 1, a file outside its folder', {'weight_map': {'b': 1}})
    outside = {**index['weight_map'], 'b': '../plain.safetensors'}
    expect('a file outside its folder', {'weight_map': outside})
    absolute = {'b': str(files / 'plain.safetensors')}
    expect('a file outside its folder', {'weight_map': absolute})
    expect(
        "lists \\['b'\\], which no shard",
        {'weight_map': {**index['weight_map'], 'b': 'm-0.safetensors'}},
    )
    expect(
        'm-9.safetensors, which is missing',
        {'weight_map': {**index['weight_map'], 'b': 'm-9.safetensors'}},
    )


@pytest.mark.parametrize('name', ['plain.safetensors', 'plain.pth', 'old.pth'])
def test_damaged_files_give_one_clear_error(name, files):
    data = (files / name).read_bytes()
    path = files / f'damaged{name}'
    rng = random.Random(0)
    damaged = [data[:length] for length in range(0, len(data), max(1, len(data) // 40))]
    for _ in range(60):
        start = rng.randrange(len(data))
        damaged.append(data[:start] + rng.randbytes(8) + data[start + 8 :])
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            read_checkpoint(path)
        except CheckpointError as err:
            assert path.name in str(err)
            refused += 1
    assert refused > 40


@pytest.mark.parametrize('name', ['plain.safetensors', 'plain.pth'])
def test_a_file_may_be_replaced_while_its_tensors_are_used(name, files):
    path, content = files / name, (files / name).read_bytes()
    state = read_checkpoint(path)['state_dict']
    state['a.bias'].zero_()  # a private copy, not the file
    assert path.read_bytes() == content
    (files / 'new').write_bytes(b'something else')
    (files / 'new').rename(path)
    assert torch.equal(state['a.weight'], STATE['a.weight'])
