"""Downloads by address from a small server on this machine that has every fault."""

import hashlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors.torch import save

from sapiens2_mm.checkpoint import CheckpointError, read_checkpoint
from sapiens2_mm.checkpoint.io import download, transfer_speed
from sapiens2_mm.checkpoint.io.download import download_url

STATE = {'w': torch.arange(40000.0)}
CONTENT = save(STATE)
OTHER = save({'w': STATE['w'] + 1})
HALF = len(CONTENT) // 2
HTML = b'<!DOCTYPE html><html>log in</html>'
INDEX = 'model.safetensors.index.json'


def tag_of(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()}"'


class Handler(BaseHTTPRequestHandler):
    """Answers by the script of the test; each request is noted."""

    requests: list[tuple[str, str | None]] = []
    script: Callable[['Handler', int], None]

    def log_message(self, *args) -> None:
        pass

    def do_GET(self) -> None:
        self.requests.append((self.path, self.headers.get('Range')))
        type(self).script(self, len(self.requests))

    def send(
        self,
        content: bytes = CONTENT,
        tag: str | None = '',
        length: object = '',
        stop: int | None = None,
        ranges: bool = True,
        if_range: bool = True,
        **headers: str,
    ) -> None:
        """A good answer, or one that differs in one thing."""
        tag = tag_of(content) if tag == '' else tag
        first = 0
        wanted = self.headers.get('Range')
        known = self.headers.get('If-Range') in (tag, headers.get('last_modified'))
        if wanted and ranges and (known or not if_range):
            first = int(wanted.removeprefix('bytes=').removesuffix('-'))
            if first >= len(content):
                return self.send_error(416)
            end = len(content)
            headers = {'content_range': f'bytes {first}-{end - 1}/{end}', **headers}
        self.send_response(206 if first else 200)
        length = len(content) - first if length == '' else length
        for name, value in dict(etag=tag, content_length=length, **headers).items():
            if value is not None:
                self.send_header(name.replace('_', '-'), str(value))
        self.end_headers()
        self.wfile.write(content[first:stop])

    def drip(self) -> None:
        self.send(stop=100)
        for place in range(100, 300):
            self.wfile.write(CONTENT[place : place + 1])
            if self.server.done.wait(0.01):
                return

    def drip_header(self) -> None:
        self.wfile.write(b'HTTP/1.1 200 OK\r\nX: ')
        while not self.server.done.wait(0.05):
            self.wfile.write(b'x')


@pytest.fixture(scope='module')
def server() -> Iterator[str]:
    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    server.done = threading.Event()
    server.handle_error = lambda *args: None  # connections that the client has left
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f'http://127.0.0.1:{server.server_port}'
    server.done.set()
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache, no waiting, a server without fault."""
    monkeypatch.setenv('NO_PROXY', '127.0.0.1')
    monkeypatch.setattr(torch.hub, '_hub_dir', str(tmp_path / 'torch'))
    monkeypatch.setattr(download, '_WAIT', 0)
    monkeypatch.setattr(transfer_speed, 'TIMEOUT', 5)  # nothing waits for it
    Handler.script = lambda self, number: self.send()
    Handler.requests.clear()
    return tmp_path / 'torch' / 'checkpoints'


def loads(address: str) -> bool:
    state = read_checkpoint(address)['state_dict']
    return list(state) == ['w'] and torch.equal(state['w'], STATE['w'])


def kept(cache: Path) -> list[str]:
    """Names in the cache without the locks."""
    names = {path.name for path in cache.rglob('*.*')}
    return sorted(name for name in names if not name.endswith('.lock'))


# What the server does at the first request; it answers rightly from the second on.
# The last entry says from where the second request goes on.
PASSING = {
    'breaks off': (lambda self: self.send(stop=HALF), HALF),
    'stalls': (lambda self: (self.send(stop=HALF), self.server.done.wait(2)), HALF),
    'too slow': (Handler.drip, 'somewhere'),
    'busy': (lambda self: self.send_error(503), None),
    'hangs up': (lambda self: None, None),
    'no tag': (lambda self: self.send(stop=HALF, tag=None), None),
    'weak tag': (lambda self: self.send(stop=HALF, tag='W/"1"'), None),
    'another version': (lambda self: self.send(OTHER, stop=HALF), HALF),
    'length too long': (lambda self: self.send(length=len(CONTENT) + 9), 'end'),
}


@pytest.mark.parametrize('fault', PASSING)
def test_a_fault_that_passes(fault, server, cache, monkeypatch, log):
    first, place = PASSING[fault]
    if fault in ('stalls', 'too slow'):
        monkeypatch.setattr(transfer_speed, 'TIMEOUT', 0.5)
    if fault == 'too slow':
        monkeypatch.setattr(transfer_speed, 'MIN_SPEED', 100_000)
    Handler.script = lambda self, n: first(self) if n == 1 else self.send()
    assert loads(f'{server}/model.safetensors')
    ranges = [range for _, range in Handler.requests]
    assert ranges[0] is None and 'model.safetensors: the ' in log.text
    if place == HALF or place is None:
        assert ranges[1:] == [place and f'bytes={place}-']
    assert kept(cache) == ['model.safetensors']


DATE = 'Wed, 21 Oct 2026 07:28:00 GMT'
# How a server answers a request for the rest -> whether the rest alone is taken.
RESTS = {
    'rest': (dict(), True),
    'by date': (dict(tag=None, last_modified=DATE), True),
    'ignores ranges': (dict(ranges=False), False),
    'rest of another version': (dict(content=CONTENT, if_range=False), False),
    'another part': (dict(content_range=f'bytes 0-9/{len(CONTENT)}'), False),
    'nonsense': (dict(content_range='lines 1-2'), False),
}


@pytest.mark.parametrize('way', RESTS)
def test_the_rest_is_asked_for_by_a_later_call(way, server, cache):
    options, is_taken = RESTS[way]
    former = OTHER if way == 'rest of another version' else CONTENT
    start = {**options, 'content': former, 'stop': HALF}
    start.pop('content_range', None)
    Handler.script = lambda self, n: self.send(
        **{**start, 'stop': min(n, 2) * HALF // 2}
    )
    address = f'{server}/model.safetensors'
    with pytest.raises(CheckpointError, match=r'bytes arrived\) 4 times; try again'):
        read_checkpoint(address)
    assert kept(cache) == ['model.safetensors.part', 'model.safetensors.part.tag']
    Handler.requests.clear()
    Handler.script = lambda self, n: self.send(**(options if n == 1 else {}))
    assert loads(address)
    assert Handler.requests[0][1] and len(Handler.requests) == (
        1 if is_taken or way == 'ignores ranges' else 2
    )
    assert kept(cache) == ['model.safetensors']


GOOD = {
    'no length': dict(length=None),
    'a word as length': dict(length='many'),
    'negative length': dict(length=-5),
}


@pytest.mark.parametrize('kind', GOOD)
def test_a_length_that_says_nothing(kind, server):
    Handler.script = lambda self, n: self.send(**GOOD[kind])
    assert loads(f'{server}/model.safetensors') and len(Handler.requests) == 1


# What a server does each time -> the error.
LASTING = {
    'missing': (lambda self: self.send_error(404), 'the server answered 404 Not Found'),
    'busy': (lambda self: self.send_error(503), 'the server answered 503 .* 4 times'),
    'no answer': (lambda self: self.server.done.wait(0.5), r'timed out\) 4 times'),
    'half a header': (
        lambda self: (self.wfile.write(b'HTTP/1.1 2'), self.server.done.wait(0.5)),
        'timed out',
    ),
    'a header that drips': (Handler.drip_header, r'the answer timed out\) 4 times'),
    'no http': (lambda self: self.wfile.write(b'SSH-2.0\r\n\r\n'), 'SSH-2.0'),
    'breaks off': (
        lambda self: self.send(stop=HALF, ranges=False),
        rf'{HALF} of {len(CONTENT)} bytes arrived\) 4 times; .* {HALF} bytes are kept',
    ),
    'breaks off without a tag': (
        lambda self: self.send(stop=HALF, tag=None),
        r'bytes arrived\) 4 times; try again$',
    ),
    'endless': (
        lambda self: self.send(CONTENT + bytes(99), length=None),
        f'over {len(CONTENT) + 50} bytes',
    ),
    'huge': (lambda self: self.send(length=10**30), f'over {len(CONTENT) + 50} bytes'),
    'length too short': (
        lambda self: self.send(length=HALF, stop=HALF),
        f'the first part of a safetensors file .*, {HALF} bytes; nothing of it is kept',
    ),
    'page': (lambda self: self.send(HTML), f'a page of HTML.*, {len(HTML)} bytes'),
    'picture': (lambda self: self.send(b'\x89PNG' * 9), 'it begins with .*PNG'),
    'pointer': (
        lambda self: self.send(b'version https://git-lfs.github.com/spec/v1\n'),
        'a pointer of git-lfs',
    ),
    'empty': (lambda self: self.send(b''), 'an empty file, 0 bytes'),
}


@pytest.mark.parametrize('fault', LASTING)
def test_a_fault_that_lasts_is_named_and_the_next_try_works(
    fault, server, cache, monkeypatch
):
    answer, message = LASTING[fault]
    if 'timed out' in message:
        monkeypatch.setattr(transfer_speed, 'TIMEOUT', 0.2)
    monkeypatch.setattr(download, '_MAX_BYTES', len(CONTENT) + 50)
    Handler.script = lambda self, n: answer(self)
    address = f'{server}/model.safetensors'
    with pytest.raises(CheckpointError, match=rf'(?s){message}'):
        read_checkpoint(address)
    assert 'model.safetensors' not in kept(cache)
    monkeypatch.setattr(transfer_speed, 'TIMEOUT', 5)
    Handler.script = lambda self, n: self.send()
    assert loads(address)


def test_no_server():
    with socket.create_server(('127.0.0.1', 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(CheckpointError, match=r'failed .*refused.*4 times'):
        read_checkpoint(f'http://127.0.0.1:{port}/a.pth')


def test_no_room_on_the_disk(server, cache, monkeypatch):
    free = SimpleNamespace(free=HALF)
    monkeypatch.setattr(download.shutil, 'disk_usage', lambda path: free)
    with pytest.raises(CheckpointError, match=f'no room for {len(CONTENT)} bytes'):
        read_checkpoint(f'{server}/model.safetensors')
    assert kept(cache) == []


def test_more_than_the_server_has(server, cache):
    """What was kept is longer than the file: the server refuses the range."""
    path = cache / 'model-00.safetensors'
    download_url(f'{server}/dir/{path.name}')
    (found,) = cache.rglob(path.name)
    part = found.with_name(f'{path.name}.part')
    found.unlink()
    part.write_bytes(CONTENT * 2)
    part.with_name(f'{part.name}.tag').write_text(tag_of(CONTENT))
    assert loads(f'{server}/dir/{path.name}')
    assert [range for _, range in Handler.requests[1:]] == [
        f'bytes={2 * len(CONTENT)}-',
        None,
    ]


def test_many_at_once_download_once(server):
    Handler.script = lambda self, n: (self.server.done.wait(0.1), self.send())
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(loads, [f'{server}/model.safetensors'] * 4))
    assert len(Handler.requests) == 1


@pytest.mark.parametrize('content', [HTML, b'{"error": "busy"}', b'', b'\x89PNG'])
@pytest.mark.parametrize('name', ['model.safetensors', INDEX])
def test_what_an_older_version_left_in_the_cache_is_fetched_anew(
    name, content, server, cache, log
):
    index = json.dumps({'weight_map': {'w': 'm-1.safetensors'}}).encode()
    Handler.script = lambda self, n: self.send(
        index if self.path.endswith('.json') else CONTENT
    )
    path = download_url(f'{server}/{name}')
    path.write_bytes(content)
    assert loads(f'{server}/{name}')
    assert f'{path} is in the cache and no checkpoint' in log.text
    Handler.requests.clear()
    assert loads(f'{server}/{name}') and not Handler.requests


def test_checksum_in_the_name(server, cache):
    name = f'model-{hashlib.sha256(CONTENT).hexdigest()[:8]}.safetensors'
    for _ in range(2):
        assert loads(f'{server}/files/{name}?download=true')
    assert len(Handler.requests) == 1
    assert kept(cache) == [name] and (cache / name).is_file()
    with pytest.raises(CheckpointError, match=r'its SHA-256 \w{12}\.\.\. is not that'):
        read_checkpoint(f'{server}/wrong-00000000.pth')
    assert kept(cache) == [name]


def test_mmengine_loads_addresses(server):
    result = CheckpointLoader.load_checkpoint(f'{server}/plain.pth')
    assert torch.equal(result['state_dict']['w'], STATE['w'])


def test_an_index_brings_its_shards(server):
    index = json.dumps({'weight_map': {'w': 'm-1.safetensors'}}).encode()
    Handler.script = lambda self, n: self.send(
        index if '.json' in self.path else CONTENT
    )
    address = f'{server}/a/{INDEX}?download=true'
    assert loads(address)
    assert [path for path, _ in Handler.requests][1] == '/a/m-1.safetensors'
    Handler.requests.clear()
    assert loads(address)  # from the cache
    assert not Handler.requests


@pytest.mark.parametrize(
    'index, message',
    [
        ('{"weight_map": {"w": "../../evil.safetensors"}}', 'a file outside its'),
        (f'{{"weight_map": {{"w": "b.{INDEX}"}}}}', 'no safetensors file'),
        (
            f'{{"weight_map": {{"w": "{"a" * 300}.safetensors"}}}}',
            'no safetensors file',
        ),
        ('{"weights": {}}', 'no "weight_map"'),
        ('{"weight_map": {', 'damaged or no checkpoint'),
        (' ' * (1 << 21) + '{}', 'over 2097152 bytes'),
    ],
    ids=['up', 'nested', 'name', 'none', 'half', 'long'],
)
def test_an_index_that_is_no_good_fetches_nothing_more(index, message, server, cache):
    Handler.script = lambda self, n: self.send(index.encode())
    with pytest.raises(CheckpointError, match=message):
        read_checkpoint(f'{server}/{INDEX}')
    assert len(Handler.requests) == 1 and kept(cache) == []


def test_files_of_the_same_name_at_two_places_are_two_files(server):
    Handler.script = lambda self, n: self.send(OTHER if n == 2 else CONTENT)
    states = [
        read_checkpoint(f'{server}/{place}/model.safetensors')['state_dict']
        for place in ('one', 'other')
    ]
    assert torch.equal(states[0]['w'], STATE['w'])
    assert torch.equal(states[1]['w'], STATE['w'] + 1)


@pytest.mark.parametrize(
    'name',
    [
        '',
        '..',
        '%2E%2E',
        '..%2F..%2F..%2Fevil.pth',
        'a%2Fb.pth',
        '..%5Cevil.pth',
        'evil%00.pth',
        'evil%0A.pth',
        'a' * 300,
        '%C3%A9' * 150,
    ],
)
def test_an_address_names_a_file_of_the_cache(name, server, tmp_path):
    with pytest.raises(CheckpointError, match='names no file'):
        read_checkpoint(f'{server}/files/{name}')
    assert not Handler.requests and not list(tmp_path.rglob('*'))
