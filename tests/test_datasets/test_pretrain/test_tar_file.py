"""Shards that fail: named, tried again, passed over."""

import io
import re
import shlex
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from threading import Event, Thread
from typing import BinaryIO

import cv2
import numpy as np
import pytest

pytest.importorskip('webdataset')

from sapiens2_mm.checkpoint.io import transfer_speed
from sapiens2_mm.datasets import TarShardDataset
from sapiens2_mm.datasets.pretrain import tar_file
from sapiens2_mm.datasets.pretrain.tar_file import read_members

JPEG = cv2.imencode('.jpg', np.zeros((20, 16, 3), np.uint8))[1].tobytes()


def pack(path: Path, *names: str, content: bytes = JPEG) -> Path:
    with tarfile.open(path, 'w') as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


@pytest.fixture(autouse=True)
def waits(monkeypatch) -> list[float]:
    seconds: list[float] = []
    monkeypatch.setattr(tar_file, 'sleep', seconds.append)
    return seconds


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    return pack(tmp_path / 'x.tar', *(f'{number}.jpg' for number in range(5)))


def read(url: object, **kwargs) -> Iterator[str]:
    return (name for name, _ in read_members(str(url), lambda name: True, **kwargs))


def read_all(url: object) -> tuple[list[str], str]:
    """Names that were read, and the error at the end."""
    names: list[str] = []
    with pytest.raises(OSError) as error:
        names.extend(read(url))  # keeps what came before the error
    return names, str(error.value)


def damaged(data: bytes, way: str) -> bytes:
    places = [
        n for n in range(0, len(data), 512) if data[n + 257 : n + 262] == b'ustar'
    ]
    if way == 'within a member':
        return data[: places[3] + 700]
    if way == 'within a header':
        return data[: places[3] + 100]
    if way == 'between members':
        return data[: places[3]]
    assert way == 'bytes of a header'
    return data[: places[3]] + bytes(7 for _ in range(512)) + data[places[3] + 512 :]


@pytest.mark.parametrize(
    ('way', 'reason'),
    [
        ('within a member', 'unexpected end of data'),
        ('within a header', 'truncated header at byte 4608'),
        ('between members', 'empty header at byte 4608'),  # the end, for tarfile
        ('bytes of a header', 'invalid header at byte 4608'),  # the end as well
    ],
)
def test_a_shard_that_breaks_off_is_an_error(shard, way, reason, waits):
    shard.write_bytes(damaged(shard.read_bytes(), way))
    names, error = read_all(shard)
    assert names == ['0.jpg', '1.jpg', '2.jpg']
    assert error == f'ReadError: {reason}; tried 3 times'
    assert waits == [1.0, 2.0]


def test_a_second_try_goes_on_where_the_first_broke_off(shard, tmp_path, waits):
    whole, part = shlex.quote(str(shard)), shlex.quote(str(tmp_path / 'part.tar'))
    Path(tmp_path / 'part.tar').write_bytes(
        damaged(shard.read_bytes(), 'within a member')
    )
    mark = shlex.quote(str(tmp_path / 'mark'))
    command = f'if [ -e {mark} ]; then cat {whole}; else touch {mark}; cat {part}; fi'
    names = list(read(f'pipe:{command}'))
    assert names == [f'{number}.jpg' for number in range(5)] and waits == [1.0]


@pytest.mark.parametrize(
    ('command', 'read_names'),
    [('exit 1', 0), ('cat {}; exit 3', 5), ('head -c 3000 {}; exit 1', 2)],
)
def test_a_command_that_fails_is_an_error(shard, command, read_names):
    """Whatever it wrote before counts."""
    command = command.format(shlex.quote(str(shard)))
    names, error = read_all(f'pipe:{command}')
    assert len(names) == read_names
    assert f'exit status {command[-1]} of {command}; tried 3 times' in error


@pytest.mark.parametrize('num_used', [1, 5])
def test_a_command_that_is_left_early_is_no_error(shard, num_used):
    members = read(f'pipe:cat {shlex.quote(str(shard))}; sleep 0.1; true')
    assert len(list(islice(members, num_used))) == num_used
    members.close()


def test_a_slow_reader_is_no_slow_command(tmp_path, monkeypatch, waits):
    monkeypatch.setattr(transfer_speed, 'TIMEOUT', 0.4)
    monkeypatch.setattr(transfer_speed, 'MIN_SPEED', 1e6)
    members = [f'{number}.jpg' for number in range(5)]
    path = pack(tmp_path / 'large.tar', *members, content=bytes(20_000))
    names = []
    for name in read(f'pipe:cat {shlex.quote(str(path))}'):
        names.append(name)
        Event().wait(0.12)  # as a training step may take
    assert names == members and not waits  # for another try


@pytest.mark.parametrize(
    ('command', 'reason'),
    [
        ('head -c 3000 {}; exec sleep 3', 'TimeoutError: .* wrote nothing for 0.5 s'),
        (
            'head -c 3000 {}; while sleep 0.02; do printf x; done',
            r'TimeoutError: too slow: \d+ bytes in \d s',
        ),
        ('exec >&-; exec sleep 3', 'OSError: .* does not end'),
    ],
)
def test_a_command_that_stalls_is_ended(shard, command, reason, monkeypatch):
    monkeypatch.setattr(transfer_speed, 'TIMEOUT', 0.5)
    monkeypatch.setattr(transfer_speed, 'MIN_SPEED', 1e5)
    names, error = read_all(f'pipe:{command.format(shlex.quote(str(shard)))}')
    assert len(names) == (2 if 'head' in command else 0)
    assert re.fullmatch(f'{reason}; tried 3 times', error)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A server of the folder; ``stall.tar`` sticks."""
    done = Event()

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *args) -> None:
            pass

        def copyfile(self, source: BinaryIO, target: BinaryIO) -> None:
            if self.path != '/stall.tar':
                return super().copyfile(source, target)
            target.write(source.read(3000))
            done.wait(3)

    handler = partial(Handler, directory=str(tmp_path))
    server = ThreadingHTTPServer(('127.0.0.1', 0), handler)
    server.handle_error = lambda *args: None  # a client that has left
    Thread(target=server.serve_forever, daemon=True).start()
    yield f'http://127.0.0.1:{server.server_port}'
    done.set()
    server.shutdown()
    server.server_close()


def test_a_server_that_stalls_is_named_and_passed_over(
    shard, tmp_path, address, monkeypatch
):
    monkeypatch.setattr(transfer_speed, 'TIMEOUT', 0.3)
    (tmp_path / 'stall.tar').write_bytes(shard.read_bytes())
    bad = f'{address}/stall.tar'
    dataset = TarShardDataset([bad, str(shard)], pipeline=[], shards_per_block=1)
    samples = list(islice(iter(dataset), 10))
    ((named, error),) = {item for sample in samples for item in sample['skipped']}
    assert named == bad
    assert error == 'TimeoutError: curl wrote nothing for 0.3 s; tried 3 times'
    used = {sample['img_path'].rpartition(' ')[2] for sample in samples}
    assert used == {f'{number}.jpg' for number in range(5)}


def test_addresses(shard, address):
    assert len(list(read(f'{address}/{shard.name}'))) == 5
    names, error = read_all(f'{address}/missing.tar')
    assert names == [] and error == 'OSError: exit status 22 of curl; tried 3 times'


BAD: dict[str, Callable[[Path, str], str]] = {
    'command': lambda folder, address: 'pipe:exit 1',
    'cut': lambda folder, address: str(folder / 'cut.tar'),
    'address': lambda folder, address: f'{address}/missing.tar',
    'scheme': lambda folder, address: 'nosuch://server/x.tar',
    'missing': lambda folder, address: str(folder / 'missing.tar'),
}


@pytest.mark.parametrize('kind', list(BAD))
def test_one_bad_shard_of_four(tmp_path, address, kind):
    """Four readers, so that one of them has nothing else at first."""
    good = [
        str(pack(tmp_path / f'{number}.tar', f'{number}.jpg', f'{number}b.jpg'))
        for number in range(3)
    ]
    (tmp_path / 'cut.tar').write_bytes(Path(good[0]).read_bytes()[:700])
    bad = BAD[kind](tmp_path, address)
    skipped, used = {}, set()
    for rank in range(4):
        dataset = TarShardDataset([bad, *good], pipeline=[], shards_per_block=1)
        dataset.rank, dataset.world_size = rank, 4
        for sample in islice(iter(dataset), 24):
            skipped |= sample['skipped']
            used.add(sample['img_path'])
    assert list(skipped) == [bad] and 'tried 3 times' in skipped[bad]
    assert len(used) == 6
