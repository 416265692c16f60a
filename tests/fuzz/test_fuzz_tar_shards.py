"""Seeded mutations of tar shards through dataset, pipeline and collate.

``SHARD_MUTATIONS=2000 pytest tests/fuzz/test_fuzz_tar_shards.py`` runs more of them.
"""

import io
import os
import signal
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import pytest
from mmengine.dataset import default_collate

pytest.importorskip('mmpretrain')
pytest.importorskip('webdataset')

from sapiens2_mm.datasets import TarShardDataset
from sapiens2_mm.datasets.pretrain import tar_file

NUM_MUTATIONS = int(os.environ.get('SHARD_MUTATIONS', '60'))
NUM_PARTS = 4
LIMIT = 20  # seconds for one mutation
PIPELINE = [
    dict(
        type='sapiens2_mm.MultiViewCrop',
        views=[dict(num_views=2, size=(32, 16), area=(0.5, 1.0))],
    ),
    dict(type='mmpretrain.PackInputs', meta_keys=('img_path', 'skipped', 'position')),
]
NAMES = ('a.jpg', 'b.c.jpg', 'b.d.jpg', 'd/e.png', 'f', '.g.jpg', 'h.JPEG', 'i.json')
_CODES = np.frombuffer(b'0123456789LKxgSDV7\xff\x80\0', np.uint8)
FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)


@contextmanager
def time_limit(what: str) -> Iterator[None]:
    def stop(*args: object) -> None:
        raise TimeoutError(f'{what} takes over {LIMIT} s')

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)


def shard(rng: np.random.Generator) -> bytes:
    """A tar file of some images, of any format, plain or compressed."""
    mode = str(rng.choice(['w', 'w', 'w:gz', 'w:bz2', 'w:xz']))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=FORMATS[rng.integers(3)]) as tar:
        for number in range(rng.integers(1, 7)):
            name = str(rng.choice(NAMES))
            if rng.random() < 0.2:
                name = f'{"long" * 35}/{number}{name}'
            image = rng.integers(0, 256, rng.integers(1, 90, 2), dtype=np.uint8)
            suffix = '.png' if name.endswith('png') else '.jpg'
            content = cv2.imencode(suffix, image)[1].tobytes()
            if rng.random() < 0.2:
                content = mutated(content, rng)
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Cut, overwritten, with bytes left out, repeated or new; or with a bad header."""
    kind, place = rng.integers(6), int(rng.integers(len(data) + 1))
    size = int(rng.integers(1, 700))
    noise = rng.integers(0, 256, size, dtype=np.uint8).tobytes()
    if kind == 0:
        return data[:place]
    if kind == 1:
        return data[:place] + noise + data[place + size :]
    if kind == 2:
        return data[:place] + data[place + size :]
    if kind == 3:
        return data[:place] + data[place : place + size] + data[place:]
    if kind == 4:
        return data[:place] + noise + data[place:]
    header = bytearray(data[place // 512 * 512 :][:512].ljust(512, b'\0'))
    begin, end = ((100, 148), (124, 136), (156, 157), (0, 100))[rng.integers(4)]
    header[begin:end] = rng.choice(_CODES, end - begin).tobytes()
    checksum = sum(header[:148]) + sum(header[156:]) + 8 * 32
    header[148:156] = b'%06o\0 ' % checksum
    return data[: place // 512 * 512] + bytes(header) + data[place // 512 * 512 + 512 :]


@pytest.mark.parametrize('part', range(NUM_PARTS))
def test_mutated_shards(tmp_path: Path, monkeypatch, part: int):
    """Batches, a named reason for what is missing, or the documented error."""
    monkeypatch.setattr(tar_file, 'sleep', lambda seconds: None)
    path = tmp_path / 'x.tar'
    outcomes = dict(batch=0, refused=0)
    for number in range(part, NUM_MUTATIONS, NUM_PARTS):
        rng = np.random.default_rng([40, number])
        path.write_bytes(mutated(shard(rng), rng))
        dataset = TarShardDataset(str(path), PIPELINE, max_skips=30, shuffle_buffer=3)
        with time_limit(f'mutation {number}'):
            try:
                batch = default_collate(list(islice(dataset, 2)))
            except RuntimeError as err:
                assert 'images in a row cannot be used' in str(err), number
                outcomes['refused'] += 1
            else:
                assert [view.shape for view in batch['inputs']] == [(2, 3, 32, 16)] * 2
                outcomes['batch'] += 1
    assert min(outcomes.values()) > 0, outcomes
