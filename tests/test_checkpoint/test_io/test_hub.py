"""Downloads from a small server on this machine that answers like the hub."""

import hashlib
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors.torch import save

from sapiens2_mm.checkpoint import CheckpointError, read_checkpoint
from sapiens2_mm.checkpoint.io.hub import HubAddress

constants = pytest.importorskip('huggingface_hub.constants')

STATE = {'w': torch.arange(40000.0)}
CONTENT = save(STATE)
with io.BytesIO() as _file:
    torch.save(STATE, _file)
    PICKLED = _file.getvalue()
OTHER = save({'w': STATE['w'] + 1})
COMMIT = 'a' * 40
GOOD_INDEX = json.dumps({'weight_map': {'w': 'm-1.safetensors'}}).encode()
INDEX = {
    'up.safetensors.index.json': b'{"weight_map": {"w": "../../../evil.safetensors"}}',
    'none.safetensors.index.json': b'{"weights": {}}',
    'half.safetensors.index.json': b'{"weight_map": {"w"',
}
FILES = {
    'facebook/sapiens2-pose-1b': ['sapiens2_1b_pose.safetensors', 'README.md'],
    'facebook/sapiens-pose-1b': ['sapiens_1b_goliath_AP_639.pth', 'README.md'],
    'facebook/sapiens-pose-1b-torchscript': ['sapiens_1b_torchscript.pt2'],
    'me/one': ['model.safetensors', 'config.json'],
    'me/two': ['a.safetensors', 'b.safetensors'],
    'me/mirror': ['sub/m.safetensors.index.json', 'sub/m-1.safetensors'],
    'me/index': [f'{name}.safetensors.index.json' for name in ('up', 'none', 'half')],
    'me/cut': ['model.safetensors'],
    'me/gated': ['model.safetensors'],
    'me/refused': ['model.safetensors'],
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    requests: list[str] = []
    tokens: set[str | None] = set()

    def log_message(self, *args) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, with_body: bool) -> None:
        self.requests.append(self.path)
        self.tokens.add(self.headers.get('Authorization'))
        parts = self.path.split('?')[0].strip('/').split('/')
        if parts[:2] == ['api', 'models']:
            repo, revision, file = '/'.join(parts[2:4]), parts[-1], None
        else:
            repo, revision, file = '/'.join(parts[:2]), parts[3], '/'.join(parts[4:])
        if repo not in FILES:
            return self.refuse(401, 'RepoNotFound', with_body)
        if repo == 'me/gated':
            return self.refuse(403, 'GatedRepo', with_body)
        if repo == 'me/refused':
            return self.refuse(401, 'GatedRepo', with_body)
        if revision not in ('main', 'v1', COMMIT, 'models', 'recursive'):
            return self.refuse(404, 'RevisionNotFound', with_body)
        if 'tree' in parts:
            files = [
                {'type': 'file', 'path': name, 'size': 1, 'oid': '0'}
                for name in FILES[repo]
            ]
            return self.send(200, json.dumps(files).encode(), with_body)
        if file is None:
            siblings = [{'rfilename': name} for name in FILES[repo]]
            info = {'id': repo, 'sha': COMMIT, 'siblings': siblings}
            return self.send(200, json.dumps(info).encode(), with_body)
        if file not in FILES[repo]:
            return self.refuse(404, 'EntryNotFound', with_body)
        content = CONTENT
        if file.endswith(('.pth', '.pt2')):
            content = PICKLED
        if file.endswith('.json'):
            content = INDEX.get(file, GOOD_INDEX)
        cut = with_body and repo == 'me/cut'
        self.send(200, content, with_body, cut)

    def refuse(self, status: int, code: str, with_body: bool) -> None:
        self.send(status, b'{}', with_body, error=code)

    def send(self, status, content, with_body, cut=False, error=None) -> None:
        self.send_response(status)
        self.send_header('Content-Length', str(len(content)))
        self.send_header('ETag', f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header('X-Repo-Commit', COMMIT)
        if error:
            self.send_header('X-Error-Code', error)
        if cut:
            self.send_header('Connection', 'close')
        self.end_headers()
        if with_body:
            self.wfile.write(content[: len(content) // 2] if cut else content)
        if cut:
            self.wfile.flush()
            self.close_connection = True


@pytest.fixture(scope='module')
def server():
    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f'http://127.0.0.1:{server.server_port}'
    server.shutdown()


@pytest.fixture(autouse=True)
def hub(server, tmp_path, monkeypatch):
    """An empty cache, and the hub at the local server."""
    monkeypatch.setenv('NO_PROXY', '127.0.0.1')
    monkeypatch.setenv('HF_ENDPOINT', server)
    for name in ('HF_HOME', 'HF_HUB_CACHE', 'HF_HUB_OFFLINE', 'HF_TOKEN'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, 'HF_HUB_CACHE', str(tmp_path / 'cache'))
    monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', False)
    monkeypatch.setattr('time.sleep', lambda seconds: None)  # between retries
    monkeypatch.setattr(torch.hub, '_hub_dir', str(tmp_path / 'torch'))
    Handler.requests.clear()
    Handler.tokens.clear()


def loads(address: str) -> bool:
    state = read_checkpoint(address)['state_dict']
    return list(state) == ['w'] and torch.equal(state['w'], STATE['w'])


@pytest.mark.parametrize(
    'address',
    [
        'hf://facebook/sapiens2-pose-1b',
        'hf://facebook/sapiens2-pose-1b/sapiens2_1b_pose.safetensors',
        'hf://facebook/sapiens2-pose-1b@v1',
        'hf://facebook/sapiens-pose-1b',  # the one .pth
        'hf://facebook/sapiens-pose-1b-torchscript',
        f'hf://me/one@{COMMIT}/model.safetensors',
        'hf://me/one',
        'hf://me/mirror',
        'hf://me/mirror/sub/m.safetensors.index.json',
    ],
)
def test_addresses(address):
    assert loads(address)
    result = CheckpointLoader.load_checkpoint(address)
    assert torch.equal(result['state_dict']['w'], STATE['w'])


def test_address_parts():
    parse = HubAddress.parse
    assert parse('hf://a/b@c/d/e.pth') == HubAddress('a/b', 'c', 'd/e.pth')
    assert parse('hf://a/b/d') == HubAddress('a/b', None, 'd')
    for size in ('0.4b', '5b'):
        file = parse(f'hf://facebook/sapiens2-normal-{size}').official_file
        assert file == f'sapiens2_{size}_normal.safetensors'
    four_k = parse('hf://facebook/sapiens2-pretrain-1b-4k')
    assert four_k.official_file == 'sapiens2_1b_4k_pretrain.safetensors'
    assert parse('hf://facebook/other').official_file is None
    for wrong in ('hf://', 'hf://a', 'hf://a/', 'hf://a/b@', 'hf:///b/c'):
        with pytest.raises(CheckpointError, match='is no hub address'):
            parse(wrong)


def test_gated_answer_tells_to_accept_the_license():
    for repo in ('me/gated', 'me/refused'):
        with pytest.raises(CheckpointError) as error:
            read_checkpoint(f'hf://{repo}/model.safetensors')
        message = str(error.value)
        assert f'accept it on https://huggingface.co/{repo}' in message
        assert 'HF_TOKEN' in message


def test_what_does_not_exist():
    with pytest.raises(CheckpointError, match='no repository me/none'):
        read_checkpoint('hf://me/none/model.safetensors')
    with pytest.raises(CheckpointError, match=r"me/one has no file 'x\.safetensors'"):
        read_checkpoint('hf://me/one/x.safetensors')
    with pytest.raises(CheckpointError, match="me/one has no revision 'v9'"):
        read_checkpoint('hf://me/one@v9/model.safetensors')
    with pytest.raises(CheckpointError, match=r'has 2 files of weights .*name one'):
        read_checkpoint('hf://me/two')


@pytest.mark.parametrize(
    'name, message',
    [
        ('up', r"names '\.\./\.\./\.\./evil\.safetensors', a file outside its folder"),
        ('none', 'no "weight_map"'),
        ('half', 'damaged or no checkpoint'),
    ],
)
def test_index_that_is_no_good_fetches_nothing_more(name, message):
    with pytest.raises(CheckpointError, match=message):
        read_checkpoint(f'hf://me/index/{name}.safetensors.index.json')
    assert not [path for path in Handler.requests if 'evil' in path]


def test_names_that_the_hub_does_not_allow():
    for address in ('hf://a b/c', 'hf://me/one/../x.safetensors'):
        with pytest.raises(CheckpointError, match=r'is no hub address .*; write hf://'):
            read_checkpoint(address)


def test_cut_connection_leaves_no_half_file(tmp_path):
    with pytest.raises(CheckpointError, match=r'me/cut.*(failed|cannot be reached)'):
        read_checkpoint('hf://me/cut/model.safetensors')
    snapshots = tmp_path / 'cache' / 'models--me--cut' / 'snapshots'
    assert not list(snapshots.rglob('*.safetensors'))


@pytest.mark.parametrize('content', [b'<!DOCTYPE html><html>log in</html>', b''])
def test_what_is_no_checkpoint_in_the_cache_is_fetched_anew(content, tmp_path, log):
    address = 'hf://me/one/model.safetensors'
    assert loads(address)
    (path,) = (tmp_path / 'cache').rglob('model.safetensors')
    path.resolve().write_bytes(content)
    assert loads(address)
    assert f'{path} is in the cache and ' in log.text
    Handler.requests.clear()
    assert loads(address) and len(Handler.requests) == 1  # whether there is another


def test_cache_serves_offline(monkeypatch):
    addresses = ('hf://me/one', 'hf://facebook/sapiens2-pose-1b', 'hf://me/mirror')
    assert all(loads(address) for address in addresses)
    Handler.requests.clear()
    monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', True)
    assert all(loads(address) for address in addresses)
    assert loads('hf://me/one/model.safetensors')
    assert not Handler.requests
    with pytest.raises(CheckpointError, match=r'not in the local .*HF_HUB_OFFLINE'):
        read_checkpoint('hf://me/two/a.safetensors')
    with pytest.raises(CheckpointError, match='not in the local cache'):
        read_checkpoint('hf://me/two')


def test_variables_set_after_the_import_count(monkeypatch, tmp_path):
    monkeypatch.setenv('HF_HOME', str(tmp_path / 'home'))
    assert loads('hf://me/one/model.safetensors')
    assert list((tmp_path / 'home' / 'hub').rglob('model.safetensors'))
    monkeypatch.setenv('HF_HUB_OFFLINE', '1')
    Handler.requests.clear()
    assert loads('hf://me/one/model.safetensors')
    with pytest.raises(
        CheckpointError,
        match='HF_HUB_OFFLINE is set.*/facebook/sapiens2-pose-1b/resolve/main/sapiens2_'
        r'1b_pose\.safetensors elsewhere, put it anywhere and give its path',
    ):
        read_checkpoint('hf://facebook/sapiens2-pose-1b')
    assert not Handler.requests


def test_cache_serves_when_the_hub_is_away(monkeypatch):
    assert loads('hf://me/one/model.safetensors')
    monkeypatch.setenv('HF_ENDPOINT', 'http://127.0.0.1:9')
    assert loads('hf://me/one/model.safetensors')
    with pytest.raises(CheckpointError, match='hub cannot be reached'):
        read_checkpoint('hf://me/two/a.safetensors')


def test_token_is_sent(monkeypatch):
    monkeypatch.setenv('HF_TOKEN', 'hf_secret')
    assert loads('hf://me/one/model.safetensors')
    assert 'Bearer hf_secret' in Handler.tokens
