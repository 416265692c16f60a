import json
import os
import resource
import shutil
import signal

import pytest
import torch
from processes import run_processes
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.multiprocessing import ProcessExitedException
from toy_run import ARCH

from sapiens2_mm.checkpoint import CheckpointError, read_checkpoint
from sapiens2_mm.checkpoint.distributed import ShardedSaver, _Writer, load_sharded
from sapiens2_mm.checkpoint.layouts.convert import convert_checkpoint
from sapiens2_mm.engine.work_dir import latest_intact_checkpoint
from sapiens2_mm.models import Sapiens2

MEAN = torch.arange(3.0)


def make(seed=0):
    """Rows that do not divide evenly, one row, a buffer; an optimizer with a state."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 1))
    model.register_buffer('mean', MEAN + seed)
    for part in (*model, model):
        fully_shard(part)
    return model, torch.optim.AdamW(model.parameters(), lr=0.1)


def step(model, optimizer, number):
    model(MEAN * number + torch.eye(3)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def content(model, optimizer, iteration):
    return dict(
        meta=dict(iter=iteration, epoch=0),
        state_dict=model.state_dict(),
        optimizer=optimizer.state_dict(),
    )


def whole(value):
    if isinstance(value, torch.Tensor):
        return (value.full_tensor() if isinstance(value, DTensor) else value).clone()
    if isinstance(value, dict):
        return {key: whole(each) for key, each in value.items()}
    return [whole(each) for each in value] if isinstance(value, list) else value


def assert_same(one, other):
    assert type(one) is type(other) or isinstance(one, dict)
    if isinstance(one, dict):
        assert list(one) == list(other)
        one, other = list(one.values()), list(other.values())
    if isinstance(one, list):
        for each in zip(one, other, strict=True):
            assert_same(*each)
    elif isinstance(one, torch.Tensor):
        assert torch.equal(one, other)
    else:
        assert one == other


def _save(rank, folder):
    """Trains 2 steps, saves, trains on while the checkpoint is written."""
    model, optimizer = make()
    saver = ShardedSaver()
    for number in (1, 2):
        step(model, optimizer, number)
    expected = whole(content(model, optimizer, 2))
    saver.save(content(model, optimizer, 2), folder / 'iter_2.pth')
    if rank == 0:
        saver.then(lambda: (folder / 'then').write_text(str(os.listdir(folder))))
    for number in (3, 4):
        step(model, optimizer, number)
    saver.wait()
    last = whole(content(model, optimizer, 4))
    if rank == 0:
        torch.save((expected, last), folder / 'expected.pt')


def _go_on(rank, folder):
    """Other weights and processes, until the checkpoint is read."""
    model, optimizer = make(seed=1)
    checkpoint = load_sharded(folder / 'iter_2.pth', model, optimizer)
    shards = checkpoint['state_dict']['0.weight'].to_local()
    assert shards.shape[0] < 5 or torch.distributed.get_world_size() == 1
    model.load_state_dict(checkpoint['state_dict'])
    optimizer.load_state_dict(checkpoint['optimizer'])
    expected, last = torch.load(folder / 'expected.pt')
    assert_same(whole(content(model, optimizer, 2)), expected)
    for number in (3, 4):
        step(model, optimizer, number)
    assert_same(whole(content(model, optimizer, 4)), last)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp('sharded')
    run_processes(_save, path, 2)
    return path


@pytest.mark.parametrize('count', [1, 3])
def test_another_number_of_processes_goes_on_equally(folder, count):
    run_processes(_go_on, folder, count)


def test_one_process_reads_it_as_its_own(folder):
    checkpoint = read_checkpoint(folder / 'iter_2.pth')
    expected, _ = torch.load(folder / 'expected.pt')
    assert_same(dict(checkpoint), expected)
    assert "'iter_2.pth'" in (folder / 'then').read_text()
    assert not list(folder.glob('.*'))


def _save_backbone(rank, folder):
    torch.manual_seed(0)
    backbone = Sapiens2(arch=ARCH, img_size=(32, 32))
    entries = dict(meta=dict(iter=1, epoch=0), state_dict=backbone.state_dict())
    if rank == 0:
        torch.save(entries, folder / 'whole.pth')
    fully_shard(backbone)
    saver = ShardedSaver()
    entries['state_dict'] = backbone.state_dict()
    saver.save(entries, folder / 'iter_1.pth')
    saver.wait()


def test_converts_as_one_file_does(tmp_path, monkeypatch):
    run_processes(_save_backbone, tmp_path, 2)
    monkeypatch.setattr('sapiens2_mm.checkpoint.io.pieces._BATCH', 10_000)
    for name in ('whole.pth', 'iter_1.pth'):
        destination = tmp_path / f'{name}.safetensors'
        convert_checkpoint(tmp_path / name, destination, 'official', torch.bfloat16)
    one, other = (load_file(path) for path in tmp_path.glob('*.safetensors'))
    assert_same(one, other)
    assert len(one) > 30


def test_a_folder_that_lost_a_file_is_named(folder, tmp_path):
    copy = shutil.copytree(folder / 'iter_2.pth', tmp_path / 'iter_2.pth')
    next(iter(copy.glob('shard-00002-*'))).unlink()
    message = r'iter_2.pth lacks files of the processes.* state_dict/0.weight, .*folder'
    with pytest.raises(CheckpointError, match=message):
        read_checkpoint(copy)
    copy.rename(tmp_path / 'iter_3.pth')
    shutil.copytree(folder / 'iter_2.pth', tmp_path / 'iter_2.pth')
    (tmp_path / 'last_checkpoint').write_text('iter_3.pth')
    assert latest_intact_checkpoint(tmp_path) == str(tmp_path / 'iter_2.pth')


class Calls:
    def __reduce__(self):
        return os.system, ('touch /tmp/called',)


def test_a_folder_runs_no_code(folder, tmp_path):
    copy = shutil.copytree(folder / 'iter_2.pth', tmp_path / 'iter_2.pth')
    state = torch.load(copy / 'state.pth')
    torch.save({**state, 'entries': Calls()}, copy / 'state.pth')
    with pytest.raises(CheckpointError, match=r'asks for posix.system, which'):
        read_checkpoint(copy)


def test_a_piece_with_an_endless_header_is_refused(folder, tmp_path):
    copy = shutil.copytree(folder / 'iter_2.pth', tmp_path / 'iter_2.pth')
    piece = next(iter(copy.glob('shard-00002-*')))
    piece.write_bytes((9 << 20).to_bytes(8, 'little') + b'{' + b' ' * (10 << 20))
    with pytest.raises(CheckpointError, match='has a header of 9437184 bytes; it is'):
        read_checkpoint(copy)


def test_pieces_of_the_same_rows_are_refused(folder, tmp_path):
    copy = shutil.copytree(folder / 'iter_2.pth', tmp_path / 'iter_2.pth')
    piece = next(iter(copy.glob('shard-00001-*')))
    with safe_open(piece, 'pt') as file:
        notes = file.metadata()
    key = 'DCP_SHARDING_INFO'
    places = json.loads(notes[key])
    places['state_dict/0.weight']['saved_offsets'][0] = 1
    save_file(load_file(piece), piece, {**notes, key: json.dumps(places)})
    with pytest.raises(CheckpointError, match=r'state_dict/0.weight are not complete'):
        read_checkpoint(copy)


def _fail(rank, folder):
    """A full disk on one process, a complete checkpoint, a kill before the last."""
    model, optimizer = make()
    saver = ShardedSaver()
    if rank == 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    saver.save(content(model, optimizer, 1), folder / 'iter_1.pth')
    with pytest.raises(OSError, match=r'iter_1.pth was not written: File too large; w'):
        saver.wait()
    if rank == 1:
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    saver.save(content(model, optimizer, 2), folder / 'iter_2.pth')
    saver.wait()
    _Writer.finish = lambda *args, **kwargs: os.kill(os.getpid(), signal.SIGKILL)
    saver.save(content(model, optimizer, 3), folder / 'iter_3.pth')
    saver.wait()


def test_a_killed_run_leaves_the_last_complete_one(tmp_path):
    with pytest.raises(ProcessExitedException, match='signal SIGKILL'):
        run_processes(_fail, tmp_path, 2)
    assert read_checkpoint(tmp_path / 'iter_2.pth')['meta']['iter'] == 2
    names = {path.name for path in tmp_path.glob('*iter*')}
    assert names >= {'iter_2.pth', '.iter_3.pth.sharded.tmp'}
    assert not names & {'iter_1.pth', 'iter_3.pth'}
    left = tmp_path / '.iter_3.pth.sharded.tmp'
    os.rename(left, tmp_path / '.iter_2.pth.sharded.tmp')
    (tmp_path / '.iter_2.pth.sharded.tmp' / 'shard-00009-of-more.safetensors').touch()
    run_processes(_save, tmp_path, 1)  # in place of the one that is there
    checkpoint = read_checkpoint(tmp_path / 'iter_2.pth')
    assert_same(dict(checkpoint), torch.load(tmp_path / 'expected.pt')[0])
    assert len(os.listdir(tmp_path / 'iter_2.pth')) == 2
