import json
import os
import shutil
import socket
import struct
import tempfile
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
import plyfile
import pytest
from PIL import Image

pytest.importorskip('mmpose')
pytest.importorskip('mmseg')
pytest.importorskip('gradio')

from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from tiny_app import tiny_inferencers

from sapiens2_mm.apis.app import serve

TASKS = ('pose', 'seg', 'pointmap')


@pytest.fixture(scope='module')
def inferencers(repo_dir):
    return tiny_inferencers(repo_dir, *TASKS)


@pytest.fixture(scope='module')
def connections():
    """Addresses that anything in this process connects to."""
    found, connect = [], socket.socket.connect

    def note(self, address):
        found.append(address)
        return connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, 'connect', note)
        yield found


@pytest.fixture(scope='module')
def page(inferencers, connections, tmp_path_factory):
    folder = tmp_path_factory.mktemp('temporary')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, 'tempdir', str(folder))
        with serve(inferencers, max_bytes=2_000_000, max_pixels=500_000) as url:
            yield url
    assert list(folder.glob('sapiens2_app_*')) == []  # the clients leave others


@pytest.fixture
def photo(data_dir, tmp_path):
    return Path(
        shutil.copy(data_dir / 'synthetic_humans/rgb/000000.jpg', tmp_path / 'a.b.jpg')
    )


@pytest.fixture(scope='module')
def connect(page, tmp_path_factory):
    """A new client, as a browser with a page of its own."""

    def connect(url=page, download=True):
        folder = tmp_path_factory.mktemp('downloads')
        return Client(url, download_files=download and str(folder), verbose=False)

    return connect


@pytest.fixture(scope='module')
def client(connect):
    return connect()


def ask(client, path, *names, whole_image=True):
    """The note, and for each task its outputs: slider, ..., downloads."""
    file = path and handle_file(str(path))
    note, *outputs = client.predict(file, names, whole_image, api_name='/predict')
    found = {}
    for name, count in (('pose', 2), ('seg', 4), ('pointmap', 3)):
        found[name], outputs = outputs[:count], outputs[count:]
    return note, found


def by_end(paths):
    return {Path(path).name.rpartition('a.b_')[2]: path for path in paths}


def labels_of(found):
    return np.load(by_end(found['seg'][-1])['seg.npz'])['labels']


def labels_by_inferencer(inferencers, path):
    (result,) = inferencers['seg'](path)
    return result.labels


def test_results_are_those_of_the_inferencers(client, inferencers, photo):
    note, found = ask(client, photo, *TASKS, whole_image=False)
    (pose,) = inferencers['pose'](photo)
    (seg,), (points,) = (inferencers[name](photo) for name in ('seg', 'pointmap'))
    height, width = seg.labels.shape
    assert note.startswith(f'**a.b.jpg**, {width} x {height} pixels')
    assert note.endswith(f'People: {len(pose.boxes)} (MoveNet MultiPose)')
    ends = {name: set(by_end(outputs[-1])) for name, outputs in found.items()}
    assert ends == dict(
        pose={'pose.json', 'pose.npz', 'pose.png'},
        seg={'seg.json', 'seg.npz', 'seg.png', 'seg_labels.png'},
        pointmap={'pointmap.json', 'pointmap.npz', 'pointmap.ply', 'pointmap.png'},
    )
    files = {
        end: path
        for outputs in found.values()
        for end, path in by_end(outputs[-1]).items()
    }
    keypoints = np.load(files['pose.npz'])['keypoints']
    np.testing.assert_array_equal(keypoints, pose.keypoints)
    np.testing.assert_array_equal(labels_of(found), seg.labels)
    pointmap = np.load(files['pointmap.npz'])['pointmap']
    np.testing.assert_array_equal(pointmap, points.maps['pointmap'])
    record = json.loads(Path(files['pose.json']).read_text())['images'][0]
    assert record['image'] == 'a.b.jpg'
    assert len(record['instances']) == len(pose.boxes) == 1
    cloud = plyfile.PlyData.read(files['pointmap.ply'])['vertex']
    np.testing.assert_array_equal(cloud['z'], pointmap[2].ravel())
    for outputs in found.values():
        assert [Image.open(path).size for path in outputs[0]] == [(width, height)] * 2


def test_legend_and_names_of_parts(client, inferencers, photo):
    _, found = ask(client, photo, 'seg')
    _, parts, legend, _ = found['seg']
    labels = labels_by_inferencer(inferencers, photo)
    meta = inferencers['seg'].task.meta
    names = [name.replace('_', ' ') for name in meta['classes']]
    present = [number for number in np.unique(labels) if number]
    assert [part['label'] for part in parts['annotations']] == [
        names[number] for number in present
    ]
    mask = np.asarray(Image.open(parts['annotations'][0]['image']))
    np.testing.assert_array_equal(mask[..., 3] > 0, labels == present[0])
    inside = mask[labels == present[0]][:, :3]
    assert (inside == meta['palette'][present[0]]).all()
    assert legend.count('<li') == 29
    for name, (red, green, blue) in zip(names, meta['palette'], strict=True):
        assert f'#{red:02x}{green:02x}{blue:02x}"></i>{name}<b>' in legend
    share = (labels == present[0]).mean()
    assert f'{names[present[0]]}<b> {share:.1%}' in legend


def test_view_of_points_stands_upright(client, inferencers, photo):
    _, found = ask(client, photo, 'pointmap')
    _, view, _ = found['pointmap']
    (result,) = inferencers['pointmap'](photo)
    vertex = plyfile.PlyData.read(view)['vertex']
    x, y, z = result.maps['pointmap'].reshape(3, -1)
    shown = (z >= np.percentile(z, 1)) & (z <= np.percentile(z, 99))
    assert 0.97 < shown.mean() < 0.99
    for axis, values in zip('xyz', (x, -y, -z), strict=True):
        np.testing.assert_array_equal(vertex[axis], values[shown])
    colors = result.picture.image.reshape(-1, 3)[shown]
    np.testing.assert_array_equal(vertex['red'], colors[:, 2])


def test_one_person_fills_the_picture(client, inferencers, photo):
    note, found = ask(client, photo, 'pose')
    (expected,) = inferencers['pose'](photo, whole_image=True)
    got = np.load(by_end(found['pose'][-1])['pose.npz'])
    np.testing.assert_array_equal(got['boxes'], expected.boxes)
    assert note.endswith('People: 1 (whole image)')


def test_only_ticked_tasks(client, photo):
    _, found = ask(client, photo, 'seg')
    assert found['seg'][0] is not None
    assert found['pose'][0] is None and not found['pose'][-1]


def png_of_declared_size(width, height):
    def chunk(name, data):
        crc = struct.pack('>I', zlib.crc32(name + data))
        return struct.pack('>I', len(data)) + name + data + crc

    header = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + chunk(b'IDAT', b'x')


@pytest.mark.parametrize(
    ('name', 'data', 'message'),
    [
        ('text.jpg', b'text', 'cannot read image text.jpg: '),
        ('empty.png', b'', 'cannot read image empty.png: '),
        ('wide.png', png_of_declared_size(1000, 501), 'more than the 0.5 megapixels'),
        ('bomb.png', png_of_declared_size(60000, 60000), 'cannot read image bomb.png'),
        ('cut.png', png_of_declared_size(10, 10), 'cannot read image cut.png'),
    ],
)
def test_bad_file_is_a_message(client, tmp_path, capfd, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(AppError) as caught:
        ask(client, tmp_path / name, 'pose')
    assert message in str(caught.value)
    assert 'BytesIO' not in str(caught.value) and '/' not in str(caught.value)
    assert 'Traceback' not in capfd.readouterr().err


def test_nothing_to_do_is_a_message(client, photo):
    with pytest.raises(AppError, match='Choose a photo first'):
        ask(client, None, 'seg')
    with pytest.raises(AppError, match='Tick at least one task'):
        ask(client, photo)


def test_pictures_of_all_kinds(client, inferencers, photo, tmp_path):
    image = Image.open(photo)
    turned = Image.Exif()
    turned[0x0112] = 6
    deep = Image.fromarray(np.asarray(image.convert('L')).astype(np.uint16) * 257)
    for name, kind, options in (
        ('cmyk.jpg', image.convert('CMYK'), {}),
        ('deep.png', deep, {}),
        ('turned.jpg', image, dict(exif=turned)),
        ('alpha.PNG', image.convert('RGBA'), {}),
    ):
        path = tmp_path / name
        kind.save(path, **options)
        _, found = ask(client, path, 'pose')
        (expected,) = inferencers['pose'](path, whole_image=True)
        (file,) = [path for path in found['pose'][-1] if path.endswith('.npz')]
        np.testing.assert_array_equal(np.load(file)['keypoints'], expected.keypoints)


def test_animation_is_said(client, photo, tmp_path):
    image = Image.open(photo)
    path = tmp_path / 'two.gif'
    image.save(path, save_all=True, append_images=[image.rotate(90)])
    note, _ = ask(client, path, 'pose')
    assert 'two.gif has 2 frames; the first one is read' in note


def test_clients_at_once_get_their_own_results(connect, inferencers, photo, tmp_path):
    paths = [tmp_path / f'{number}' / 'a.b.png' for number in range(4)]
    for number, path in enumerate(paths):
        path.parent.mkdir()
        image = Image.open(photo)
        image.crop((10 * number, 0, image.width, image.height)).save(path)
    clients = [connect(), connect()]
    with ThreadPoolExecutor(4) as threads:
        answers = list(
            threads.map(lambda c, path: ask(c, path, 'pose'), clients * 2, paths)
        )
    for path, (_, found) in zip(paths, answers, strict=True):
        (expected,) = inferencers['pose'](path, whole_image=True)
        got = np.load(by_end(found['pose'][-1])['pose.npz'])['keypoints']
        np.testing.assert_array_equal(got, expected.keypoints)


def test_file_over_the_limit_is_refused(page):
    folder = Path(os.environ['GRADIO_TEMP_DIR'])
    before = {*folder.rglob('*')}
    files = dict(files=('big.jpg', b'x' * 2_000_001))
    answer = httpx.post(f'{page}gradio_api/upload', files=files)
    assert answer.status_code == 413 and '2000000 bytes' in answer.text
    assert {*folder.rglob('*')} == before


def test_only_this_computer_is_spoken_to(page, client, photo, connections):
    ask(client, photo, 'pose')
    parts = urlsplit(page)
    assert parts.hostname == '127.0.0.1'
    with pytest.raises(ConnectionRefusedError):  # it would answer if bound to all
        socket.create_connection(('127.0.0.2', parts.port), timeout=5)
    hosts = {address[0] for address in connections if isinstance(address, tuple)}
    assert hosts <= {'127.0.0.1', '127.0.0.2', '::1'}


def test_nothing_remains(connect, inferencers, photo, tmp_path, monkeypatch):
    temporary = tmp_path / 'temporary'
    temporary.mkdir()
    monkeypatch.setattr(tempfile, 'tempdir', str(temporary))
    with serve(inferencers, keep_seconds=4) as url:
        folder = Path(os.environ['GRADIO_TEMP_DIR'])
        assert folder.parent == temporary
        client = connect(url, download=False)
        ask(client, photo, 'pose')
        (tmp_path / 'text.jpg').write_text('text')
        with pytest.raises(AppError):
            ask(client, tmp_path / 'text.jpg', 'pose')
        end = time.monotonic() + 60
        while left := [path for path in folder.rglob('*') if path.is_file()]:
            assert time.monotonic() < end, left
            time.sleep(0.2)
    assert list(temporary.iterdir()) == []
