"""Files that are no honest checkpoint, each made from an honest one."""

import io
import json
import os
import shutil
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from hostile_pickles import HOSTILE, Raw, save_raw
from hostile_values import TENSORS, TWICE, VALUES, number
from safetensors.torch import save

CANARY = 1234.5
LFS = (
    b'version https://git-lfs.github.com/spec/v1\n'
    b'oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n'
    b'size 12345\n'
)


def write_all(folder: Path, honest: dict, part: str = '') -> Iterator[tuple[str, Path]]:
    """Name and path of each file; ``honest`` is what a run has saved.

    Those whose name contains ``part`` are made. Beside ``folder`` lies ``outside/``
    with values that no file may bring.
    """
    outside = folder.parent / 'outside'
    outside.mkdir(parents=True)
    secret = save({'secret': torch.full((64,), CANARY)})
    (outside / 'secret.safetensors').write_bytes(secret)
    makers = (_of_pickles, _of_runs, _of_zips, _of_old_files, _of_tars)
    makers += (_of_safetensors, _of_indices, _of_other_kinds)
    for maker in makers:
        for count, (name, make, suffix) in enumerate(maker(honest, outside)):
            name = f'{maker.__name__[4:]}: {name}'
            if part in name:
                place = folder / f'{maker.__name__[4:]}{count:03}'
                place.mkdir(parents=True)
                path = place / f'file{suffix}'
                make(path)
                yield name, path


def _of_pickles(honest: dict, outside: Path) -> Iterator[tuple]:
    codes = {name: payload for name, (payload, _) in HOSTILE.items()}
    values = {name: Raw(opcodes) for name, opcodes in VALUES.items()}
    for name, value in {**codes, **values}.items():
        content = {**honest, 'more': value}
        # test_unpickler.py and test_limits.py have both forms of most
        for form in ('zip', 'legacy') if name in TENSORS else ('zip',):
            yield (
                f'{name} ({form})',
                lambda p, c=content, f=form: save_raw(c, p, f),
                '.pth',
            )


def _of_runs(honest: dict, outside: Path) -> Iterator[tuple]:
    """Plain data that a run, a model or a conversion cannot go on with."""
    state, meta = honest['state_dict'], honest['meta']
    hub = honest['message_hub']
    group = honest['optimizer']['param_groups'][0]
    some = next(iter(state.values()))
    changes = {
        'iter of 10 ** 12': dict(meta={**meta, 'iter': 10**12}),
        'epoch of 10 ** 12': dict(meta={**meta, 'epoch': 10**12}),
        'iter below 0': dict(meta={**meta, 'iter': -1}),
        'iter that is a text': dict(meta={**meta, 'iter': 'x'}),
        'iter that is None': dict(meta={**meta, 'iter': None}),
        'iter that is nan': dict(meta={**meta, 'iter': float('nan')}),
        'no epoch': dict(meta={k: v for k, v in meta.items() if k != 'epoch'}),
        'meta that is a list': dict(meta=[1]),
        'hub that is a list': dict(message_hub=[1]),
        'hub without parts': dict(message_hub={}),
        'hub of texts': dict(message_hub=dict.fromkeys(hub, 'x')),
        'no hub': dict(message_hub=None),
        'optimizer that is empty': dict(optimizer={}),
        'optimizer that is a text': dict(optimizer='x'),
        'optimizer of None': dict(optimizer=dict(state=None, param_groups=None)),
        'groups of texts': dict(optimizer=dict(state={}, param_groups=['x'])),
        'groups without parameters': dict(
            optimizer=dict(state={}, param_groups=[{**group, 'params': 3}])
        ),
        'schedules of None': dict(param_schedulers=[None, None]),
        'schedules of texts': dict(param_schedulers='xy'),
        'schedules with a step of text': dict(
            param_schedulers=[{'step': 'x', 'last_step': 'x'}] * 2
        ),
        'random state of texts': dict(
            random_state=dict(python='x', numpy='x', torch='x', cuda='x')
        ),
        'random state that is a list': dict(random_state=[1]),
        'averages of texts': dict(ema_state_dict=dict.fromkeys(state, 'x')),
        'averages that are a list': dict(ema_state_dict=[1]),
        'weights that are texts': dict(state_dict={**dict.fromkeys(state, 'x')}),
        'weights under numbers': dict(state_dict={**state, 5: some}),
        'weights under None': dict(state_dict={**state, None: some}),
        'weights under bytes': dict(state_dict={**state, b'a': some}),
        'averages of other parts': dict(ema_state_dict={}),
        'a block of 10 ** 7': dict(
            state_dict={**state, 'backbone.blocks.10000000.w': some}
        ),
        'a block of 5000 digits': dict(
            state_dict={**state, f'backbone.blocks.{"9" * 5000}.w': some}
        ),
        'blocks without number': dict(
            state_dict={**state, 'backbone.blocks.x': some, 'backbone.blocks.': some}
        ),
        'many blocks, each of its own': dict(
            state_dict={
                **state,
                **{f'backbone.blocks.{n}.w{n}': some for n in range(9000)},
            }
        ),
        'a name of 1 MB': dict(state_dict={**state, 'x' * 1_000_000: some}),
        'a name with control codes': dict(
            state_dict={'\x1b[2J\n' + k: v for k, v in state.items()}
        ),
        'weights without dimensions': dict(
            state_dict={k: torch.tensor(1.0) for k in state}
        ),
        'weights of nothing': dict(state_dict={k: torch.zeros(0, 0) for k in state}),
        'complex weights': dict(
            state_dict={k: v.to(torch.complex64) for k, v in state.items()}
        ),
        'the same weights 4000 times': dict(
            state_dict={
                **{f'head.{n}.w': torch.ones(100_000)[:] for n in range(1)},
                **state,
                **dict(_repeated(torch.ones(100_000), 4000)),
            }
        ),
        'names of transformers': dict(
            state_dict={
                'model.embeddings.register_tokens': torch.tensor(1.0),
                'model.embeddings.cls_token': torch.tensor(1.0),
                'decode_head.predictor.weight': torch.tensor(1.0),
                'model.model.layer.0.mlp.gate_proj.weight': torch.ones(2, 3),
                'model.model.layer.0.mlp.up_proj.weight': torch.ones(5, 7),
            }
        ),
        'a task file of scalars': dict(
            state_dict={
                **state,
                'decode_head.conv_pose.weight': torch.tensor(1.0),
                'decode_head.deconv_layers.x.weight': torch.tensor(1.0),
            }
        ),
    }
    for number_, (name, change) in enumerate(changes.items()):
        content, form = {**honest, **change}, ('zip', 'legacy')[number_ % 2]
        yield f'{name} ({form})', lambda p, c=content, f=form: save_raw(c, p, f), '.pth'


def _repeated(tensor: torch.Tensor, count: int) -> Iterator[tuple[str, torch.Tensor]]:
    for number_ in range(count):
        yield f'head.copy{number_}', tensor.view(-1)


def _saved(honest: dict, form: str = 'zip') -> bytes:
    file = io.BytesIO()
    torch.save(honest, file, _use_new_zipfile_serialization=form == 'zip')
    return file.getvalue()


def _of_zips(honest: dict, outside: Path) -> Iterator[tuple]:
    data = _saved(honest)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    pickled = next(name for name in records if name.endswith('data.pkl'))
    folder = pickled.partition('/')[0]

    def zipped(change: Any = None, more: Any = (), method: int = 0) -> Any:
        def make(path: Path) -> None:
            with zipfile.ZipFile(path, 'w', method) as archive:
                for name, content in records.items():
                    content = change(name, content) if change else content
                    if content is not None:
                        archive.writestr(name, content)
                for name, content in more:
                    archive.writestr(name, content)

        return make

    bomb = b'\x80\x02' + b']' * 300_000_000
    one = lambda name, content: bomb if name == pickled else content  # noqa: E731
    yield '300 MB of pickle in 0.3 MB', zipped(one, method=zipfile.ZIP_DEFLATED), '.pth'
    yield 'compressed', zipped(method=zipfile.ZIP_DEFLATED), '.pth'
    yield 'repeated record', zipped(more=[(pickled, records[pickled])]), '.pth'
    cut = lambda name, content: content[:8] if '/data/' in name else content  # noqa: E731
    yield 'records shorter than storages', zipped(cut), '.pth'
    lost = lambda name, content: None if '/data/' in name else content  # noqa: E731
    yield 'records that are not there', zipped(lost), '.pth'
    gone = lambda name, content: None if name == pickled else content  # noqa: E731
    yield 'no pickle', zipped(gone), '.pth'
    names = [(f'{folder}/x{n}', b'') for n in range(100_000)]
    yield '100,000 records', zipped(more=names), '.pth'
    script = [(f'{folder}/constants.pkl', b'\x80\x02).'), (f'{folder}/code/x', b'x')]
    yield 'TorchScript', zipped(more=script), '.pth'
    order = [(f'{folder}/byteorder', b'middle')]
    swapped = lambda n, c: None if n.endswith('byteorder') else c  # noqa: E731
    yield 'byte order of its own', zipped(swapped, order), '.pth'
    climbing = [('../../outside/x', b'x'), ('/etc/x', b'x')]
    yield 'records elsewhere', zipped(more=climbing), '.pth'
    for share in (0.1, 0.5, 0.9, 0.999):
        part = data[: int(len(data) * share)]
        yield f'the first {share:.1%}', lambda p, d=part: p.write_bytes(d), '.pth'
    directory = data.index(b'PK\x01\x02')
    for name, at, value in (
        ('a record behind the file', 42, b'\xff\xff\xff\x7f'),
        ('a record of 4 GB', 20, b'\xfe\xff\xff\xff\xfe\xff\xff\xff'),
        ('a record with a password', 8, b'\x01\x00'),
        ('a name of 64 kB', 28, b'\xff\xff'),
    ):
        at += directory
        broken = data[:at] + value + data[at + len(value) :]
        yield name, lambda p, d=broken: p.write_bytes(d), '.pth'
    yield 'a comment', lambda p: p.write_bytes(data[:-2] + b'\x05\x00hello'), '.pth'
    yield 'something before', lambda p: p.write_bytes(b'x' * 100 + data), '.pth'
    yield 'something behind', lambda p: p.write_bytes(data + b'x' * 100), '.pth'
    yield 'two files in one', lambda p: p.write_bytes(data + data), '.pth'
    yield 'named safetensors', lambda p: p.write_bytes(data), '.safetensors'
    yield 'named json', lambda p: p.write_bytes(data), '.json'


def _of_old_files(honest: dict, outside: Path) -> Iterator[tuple]:
    data = _saved(honest, 'legacy')
    keys = data.rindex(b'\x80\x02]q\x00(X')  # of the storages, before their bytes
    for share in (0.001, 0.1, 0.5, 0.9, 0.999):
        part = data[: int(len(data) * share)]
        yield f'the first {share:.1%}', lambda p, d=part: p.write_bytes(d), '.pth'
    for name, change in {
        'no storages': data[:keys] + b'\x80\x02].',
        'storages that are a number': data[:keys] + b'\x80\x02K\x01.',
        'storages that are lists': data[:keys] + b'\x80\x02](])e.',
        'storages by doubling': data[:keys] + b'\x80\x02](' + TWICE + b'e.',
        'storages without end': data[:keys] + b'\x80\x02](' + b'N' * 2_000_000 + b'e.',
        'something behind': data + b'x' * 100,
        'another magic number': data.replace(b'l\xfc\x9cF', b'l\xfc\x9cG', 1),
        'a magic number in itself': b'\x80\x02]q\x01h\x01a.' + data,
        'a version of doubling': data[:15] + b'\x80\x02' + TWICE + b'.' + data[15:],
        'a long version': data[:15] + b'\x80\x02' + number(1 << 9_000_000) + b'.',
        'storages of another size': data[: keys + 200]
        + b'\xff' * 16
        + data[keys + 216 :],
    }.items():
        yield name, lambda p, d=change: p.write_bytes(d), '.pth'


def _of_tars(honest: dict, outside: Path) -> Iterator[tuple]:
    """torch before 2016 wrote tar files; shards of training images are some, too."""

    def tar(kind: bytes, link: str = '', size: int = 0, name: str = 'storages') -> Any:
        def make(path: Path) -> None:
            with tarfile.open(path, 'w') as archive:
                for member in (name, 'tensors', 'pickle'):
                    info = tarfile.TarInfo(member)
                    if member == name:
                        info.type, info.linkname = kind, link
                        info.size = size
                    data = bytes(size) if member == name else b'\x80\x02K\x00.'
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))

        return make

    for suffix in ('.pth', '.tar'):
        yield f'storages ({suffix})', tar(tarfile.REGTYPE, size=100), suffix
        yield f'a FIFO ({suffix})', tar(tarfile.FIFOTYPE), suffix
        link = str(outside / 'secret.safetensors')
        yield f'a link elsewhere ({suffix})', tar(tarfile.SYMTYPE, link), suffix
        yield f'a hard link elsewhere ({suffix})', tar(tarfile.LNKTYPE, link), suffix
        yield f'a device ({suffix})', tar(tarfile.CHRTYPE), suffix
        name = '../../outside/written'
        yield f'a member elsewhere ({suffix})', tar(tarfile.REGTYPE, name=name), suffix
    magic = b'\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.'

    def both(path: Path) -> None:
        tar(tarfile.FIFOTYPE)(path)
        head = bytearray(path.read_bytes())
        head[: len(magic)] = magic
        head[148:156] = b'        '
        head[148:156] = b'%06o\x00 ' % sum(head[:512])
        path.write_bytes(head)

    yield 'a tar that is a pickle, too', both, '.pth'


def _header(entries: Any, data: bytes = b'', length: int | None = None) -> bytes:
    header = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack('<Q', len(header) if length is None else length) + header + data


def _weights(honest: dict) -> dict:
    return {key: value.clone() for key, value in honest['state_dict'].items()}


def _entry(shape: Any, start: int, end: int, dtype: str = 'F32') -> dict:
    return dict(dtype=dtype, shape=shape, data_offsets=[start, end])


def _of_safetensors(honest: dict, outside: Path) -> Iterator[tuple]:
    state = _weights(honest)
    data = save(state)
    size = struct.unpack('<Q', data[:8])[0]
    entries, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    end = len(body)
    one = b'{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'

    def added(*entry: Any, more: bytes = b'', name: str = 'x') -> bytes:
        return _header({**entries, name: _entry(*entry)}, body + more)

    files = {
        'a header of 8 EB': _header(b'{}', length=(1 << 63) - 1),
        'a header of 16 EB': _header(b'{}', length=(1 << 64) - 1),
        'a header of 90 MB that is not there': _header(b'{}', length=90_000_000),
        'a header of blanks': _header(b'{' + b' ' * 20_000_000 + b'}'),
        'a deep header': _header(b'{"a":' * 100_000 + b'1' + b'}' * 100_000),
        'a deep list': _header(b'{"a":' + b'[' * 1_000_000),
        'an empty header': _header({}),
        'a header that is a list': _header(b'[1]'),
        'text that is not UTF-8': _header(b'{"\xff\xfe": 1}'),
        'a repeated name': _header(b'{"a":%s,"a":%s}' % (one, one), b'x'),
        'overlapping': added([1], 0, 4),
        'a gap': added([1], end + 4, end + 8, more=bytes(8)),
        'behind the file': added([9], end, end + 36),
        'offsets below 0': added([1], -4, 0),
        'offsets in reverse': added([1], end + 4, end),
        'offsets of 16 EB': added([1], end, (1 << 64) - 1),
        'a shape without end': added([1 << 40, 1 << 40], end, end),
        'a shape of nothing, long': added([1 << 62, 0], end, end),
        'a shape of 100,000 ones': added([1] * 100_000, end, end + 4, more=bytes(4)),
        'a shape below 0': added([-1], end, end + 4, more=bytes(4)),
        'a fractional shape': added([0.5], end, end + 4, more=bytes(4)),
        'an unknown dtype': added([1], end, end + 4, 'PICKLE', more=bytes(4)),
        'another size of dtype': added([1], end, end + 4, 'F64', more=bytes(4)),
        'bools that are none': added(
            [4], end, end + 4, 'BOOL', more=b'\x02\xff\x07\x80'
        ),
        'tensors without end': _header(
            {f'{n}': _entry([0], 0, 0) for n in range(200_000)}
        ),
        'metadata that is no text': _header(
            {**entries, '__metadata__': {'a': [1, 2]}}, body
        ),
        'metadata without end': _header(
            {**entries, '__metadata__': {f'{n}': 'x' for n in range(300_000)}}, body
        ),
        'a name of 1 MB': added([0], end, end, name='x' * 1_000_000),
        'control codes': _header(
            {'\x1b[2J\n' + k: v for k, v in entries.items()}, body
        ),
        'a block of 10 ** 7': added([0], end, end, name='backbone.blocks.10000000.w'),
        'more behind': data + b'x' * 100,
        'other bytes in the header': data[:20] + b'\xff' * 8 + data[28:],
    }
    for share in (0.001, 0.1, 0.5, 0.999):
        files[f'the first {share:.1%}'] = data[: int(len(data) * share)]
    for suffix in ('.safetensors', '.pth'):
        for name, content in files.items():
            yield f'{name} ({suffix})', lambda p, d=content: p.write_bytes(d), suffix


def _of_indices(honest: dict, outside: Path) -> Iterator[tuple]:
    data = save(_weights(honest))
    keys = list(honest['state_dict'])

    def index(content: Any) -> Any:
        def make(path: Path) -> None:
            (path.parent / 'm.safetensors').write_bytes(data)
            (path.parent / 'm.pth').write_bytes(b'\x80\x02cos\nsystem\n.')
            (path.parent / 'link.safetensors').symlink_to('/dev/zero')
            os.mkfifo(path.parent / 'fifo.safetensors')
            (path.parent / 'folder.safetensors').mkdir()
            text_ = content if isinstance(content, bytes) else json.dumps(content)
            path.write_bytes(text_ if isinstance(text_, bytes) else text_.encode())

        return make

    shards = dict.fromkeys(keys, 'm.safetensors')
    maps = {
        'a shard elsewhere': '../../outside/secret.safetensors',
        'a shard at a path': str(outside / 'secret.safetensors'),
        'a shard of an address': 'https://example.com/m.safetensors',
        'a FIFO': 'fifo.safetensors',
        'a link to a device': 'link.safetensors',
        'a folder': 'folder.safetensors',
        'this folder': '.',
        'the folder above': '..',
        'no name': '',
        'a name with NUL': 'm\x00.safetensors',
        'a name of 5000 letters': 'm' * 5000 + '.safetensors',
        'a pickle': 'm.pth',
        'itself': 'file.safetensors.index.json',
        'a shard that is not there': 'n.safetensors',
        'a number': 5,
        'a list': ['m.safetensors'],
        'a surrogate': '\ud800.safetensors',
        'backslashes': '..\\m.safetensors',
    }
    suffix = '.safetensors.index.json'
    for name, shard in maps.items():
        yield name, index({'weight_map': {**shards, 'x': shard}}), suffix
    for name, content in {
        'a weight that no shard has': {'weight_map': {**shards, 'x': 'm.safetensors'}},
        'no map': {'metadata': {}},
        'a map that is a list': {'weight_map': keys},
        'a list': [1],
        'deep lists': b'[' * 1_000_000,
        'a deep map': b'{"weight_map":' * 100_000,
        'a long number': b'{"weight_map": ' + b'9' * 100_000 + b'}',
        'a map without end': {
            'weight_map': dict.fromkeys(map(str, range(99_999)), 'm.safetensors')
        },
        'lists without end': b'{"weight_map": [' + b'{},' * 3_000_000 + b'{}]}',
        'half': json.dumps({'weight_map': shards}).encode()[:-9],
        'NaN': b'NaN',
        'UTF-16': json.dumps({'weight_map': shards}).encode('utf-16'),
        'no text': b'\xff\xfe\x00\x00' * 9,
        'nothing': b'',
        'HTML': b'<!DOCTYPE html><html></html>',
    }.items():
        yield name, index(content), suffix


def _of_other_kinds(honest: dict, outside: Path) -> Iterator[tuple]:
    for suffix in ('.pth', '.safetensors'):
        for name, content in {
            'nothing': b'',
            'one byte': b'\x80',
            'HTML': b'<!DOCTYPE html>\n<html><body>404</body></html>',
            'HTML after a mark': b'\xef\xbb\xbf\n<HTML>' + b'x' * 5000,
            'a pointer of git-lfs': LFS,
            'an answer in JSON': b'{"error": "Invalid username or password."}',
            'a text': b'Access denied\n',
            'a picture': b'\x89PNG\r\n\x1a\n' + bytes(range(256)) * 4,
            'gzip': b'\x1f\x8b\x08' + zlib.compress(b'x' * 5000),
            'zeros': bytes(100_000),
            'ones': b'\xff' * 100_000,
            'a pickle of Python 2': b'cos\nsystem\n(S"touch x"\ntR.',
        }.items():
            yield f'{name} ({suffix})', lambda p, d=content: p.write_bytes(d), suffix
        yield f'a FIFO ({suffix})', os.mkfifo, suffix
        yield f'a device ({suffix})', lambda p: p.symlink_to('/dev/zero'), suffix
        yield f'a dangling link ({suffix})', lambda p: p.symlink_to('nothing'), suffix
        yield f'a folder ({suffix})', lambda p: p.mkdir(), suffix
        yield (
            f'a folder of two ({suffix})',
            lambda p: [
                shutil.copytree(outside, p),
                shutil.copy(outside / 'secret.safetensors', p / 'other.safetensors'),
            ],
            suffix,
        )
