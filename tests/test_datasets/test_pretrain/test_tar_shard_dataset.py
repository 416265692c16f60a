import io
import re
import tarfile
from collections import Counter
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import pytest
from torch.utils.data import DataLoader

webdataset = pytest.importorskip('webdataset')

from sapiens2_mm.datasets import TarShardDataset  # noqa: E402
from sapiens2_mm.registry import DATASETS  # noqa: E402

SHARDS, PER_SHARD = 8, 5


def keep(results: dict) -> dict:
    return {key: results[key] for key in ('img_path', 'skipped', 'position')} | dict(
        number=float(results['rng'].random()), shape=results['img'].shape
    )


@pytest.fixture(scope='module')
def folder(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp('shards')
    for shard in range(SHARDS):
        with webdataset.TarWriter(str(root / f's-{shard:02d}.tar')) as writer:
            for number in range(PER_SHARD):
                image = np.full((20, 16, 3), number, np.uint8)
                writer.write(
                    {
                        '__key__': f'{shard:02d}{number}',
                        'jpg': cv2.imencode('.jpg', image)[1].tobytes(),
                        'json': b'{}',
                    }
                )
    return root


def make(shards: object, **kwargs) -> TarShardDataset:
    kwargs = {'shuffle_buffer': 4, 'shards_per_block': 2, **kwargs}
    return TarShardDataset(shards, pipeline=[keep], **kwargs)


def keys(samples: list[dict]) -> list[str]:
    return [sample['img_path'].split(': ')[1] for sample in samples]


def test_a_pass_reads_every_image_once(folder):
    samples = list(make(str(folder), repeat=False))
    assert len(samples) == SHARDS * PER_SHARD == len(set(keys(samples)))
    assert samples[0]['shape'] == (20, 16, 3)
    assert keys(samples) != sorted(keys(samples))


def test_passes_have_different_orders(folder):
    samples = list(islice(make(str(folder)), 2 * SHARDS * PER_SHARD))
    first, second = samples[: len(samples) // 2], samples[len(samples) // 2 :]
    assert sorted(keys(first)) == sorted(keys(second))
    assert keys(first) != keys(second)


@pytest.mark.parametrize('shape', ['folder', 'pattern', 'list'])
def test_ways_to_name_shards(folder, shape):
    shards = {
        'folder': str(folder),
        'pattern': str(folder / 's-{00..07}.tar'),
        'list': [str(folder / 's-{00..03}.tar'), str(folder / 's-{04..07}.tar')],
    }[shape]
    assert len(make(shards).shards) == SHARDS


@pytest.mark.parametrize('num_workers', [0, 2])
def test_two_processes_share_the_images(folder, monkeypatch, num_workers):
    samples = []
    for rank in range(2):
        monkeypatch.setattr(
            'sapiens2_mm.datasets.pretrain.tar_shard_dataset.get_dist_info',
            lambda rank=rank: (rank, 2),
        )
        dataset = make(str(folder), repeat=False)
        loader = DataLoader(
            dataset, batch_size=None, num_workers=num_workers, collate_fn=lambda x: x
        )
        samples += list(loader)
    assert len(samples) == len(set(keys(samples))) == SHARDS * PER_SHARD


@pytest.mark.parametrize('num_workers', [0, 2, 3])
@pytest.mark.parametrize('stop', [1, 4, 9, 17])
def test_seek_continues_exactly(folder, num_workers, stop):
    """Batches of 3, stopped anywhere, in any block or pass."""

    def load(dataset: TarShardDataset, count: int) -> list[list[dict]]:
        loader = DataLoader(
            dataset, batch_size=3, num_workers=num_workers, collate_fn=lambda x: x
        )
        return list(islice(loader, count))

    straight = load(make(str(folder)), stop + 6)
    positions = [(0, 0)] * max(1, num_workers)
    for batch in straight[:stop]:
        reader, *position = batch[-1]['position']
        positions[reader] = tuple(position)
    dataset = make(str(folder))
    dataset.seek(positions, stop)
    assert load(dataset, 6) == straight[stop:]


def test_unusable_images_and_shards_are_named(folder, tmp_path):
    for name in ('s-00.tar', 's-01.tar'):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    data = (tmp_path / 's-01.tar').read_bytes()
    (tmp_path / 's-01.tar').write_bytes(data[:4000])  # breaks off
    (tmp_path / 's-02.tar').write_bytes(b'')  # empty
    with tarfile.open(tmp_path / 's-03.tar', 'w') as tar:
        good = cv2.imencode('.png', np.zeros((20, 16, 3), np.uint8))[1].tobytes()
        for name, content in [
            ('x.jpg', b'not an image'), ('y.json', b'{}'), ('z.png', good),
        ]:  # fmt: skip
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    samples = list(islice(make(str(tmp_path), num_retries=0), 40))
    skipped = {item for sample in samples for item in sample['skipped']}
    text = '\n'.join(f'{name}: {reason}' for name, reason in sorted(skipped))
    assert 's-01.tar: ReadError' in text
    assert 's-02.tar' in text
    assert 's-03.tar: x.jpg: cannot read image' in text
    assert 's-03.tar: y: no image among' in text
    assert 's-03.tar: z.png' in {s['img_path'].rsplit('/', 1)[1] for s in samples}


def test_only_bad_data_ends_the_run(tmp_path):
    (tmp_path / 'a.tar').write_bytes(b'')
    with pytest.raises(RuntimeError, match='in a row cannot be used, the last is'):
        next(iter(make(str(tmp_path), max_skips=5)))


def test_short_side_limit(folder):
    with pytest.raises(RuntimeError, match='shorter side 16 is below 17'):
        next(iter(make(str(folder), min_short_side=17, max_skips=5)))


@pytest.mark.parametrize(('num_shards', 'num_readers'), [(5, 4), (7, 3), (2, 3)])
def test_readers_stay_in_step(folder, num_shards, num_readers):
    """However shards and readers divide, no image is used a pass more than another."""
    counts: Counter = Counter()
    for rank in range(num_readers):
        dataset = make(str(folder / f's-{{00..{num_shards - 1:02d}}}.tar'))
        dataset.rank, dataset.world_size = rank, num_readers
        counts.update(keys(list(islice(dataset, 12 * PER_SHARD))))
    assert len(counts) == num_shards * PER_SHARD
    assert max(counts.values()) - min(counts.values()) <= 1


def packed(path: Path, names: list[str]) -> str:
    good = cv2.imencode('.png', np.zeros((20, 16, 3), np.uint8))[1].tobytes()
    with tarfile.open(path, 'w') as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(good)
            tar.addfile(info, io.BytesIO(good))
    return str(path)


@pytest.mark.parametrize(
    ('names', 'options', 'used', 'reported'),
    [
        (['x.jpeg', 'x.png', 'y.png'], {}, ['x.jpeg', 'y.png'], ['x.png']),
        (['a.b.jpg', 'a.c.jpg'], {}, ['a.b.jpg'], ['a.c.jpg']),
        (
            ['a.b.jpg', 'a.c.jpg', 'x.jpeg', 'x.png'],
            dict(image_keys=['*.jpg', 'png']),
            ['a.b.jpg', 'a.c.jpg', 'x.png'],
            [],
        ),
        (['x.jpg', 'x.seg.png'], {}, ['x.jpg'], []),  # a mask that belongs to it
        (['x.rgb.jpg', 'x.json'], {}, ['x.rgb.jpg'], []),
        (['x.JPG', 'x.jpg', 'y.jpg'], {}, ['x.JPG', 'y.jpg'], ['x.jpg']),
        (['v1.2/x.jpg', './y.png', 'z/._x.jpg'], {}, ['v1.2/x.jpg', './y.png'], []),
        (['x.json', 'y.jpg'], {}, ['y.jpg'], ['x']),
    ],
    ids=str,
)
def test_every_sample_is_read_or_named(tmp_path, names, options, used, reported):
    dataset = make(packed(tmp_path / 'x.tar', names), **options)
    samples = list(islice(dataset, 2 * len(used)))
    assert sorted(set(keys(samples))) == sorted(used)
    skipped = [item for sample in samples for item in sample['skipped']]
    assert {name.split(': ')[1] for name, _ in skipped} == set(reported)


def test_missing_shards_are_named_at_the_start(folder, log):
    make(str(folder / 's-{06..09}.tar'))
    assert 'pretraining on 4 shards' in log.text
    assert re.search(r'2 of 4 shards are missing, such as .*s-08\.tar', log.text)


def test_seed_decides_order_and_randomness(folder):
    def draw(seed: int | None) -> list[dict]:
        dataset = make(str(folder), repeat=False)
        dataset.seed = seed  # as SeekingTrainLoop hands it on
        return list(dataset)

    first, again, other = (
        draw(1),
        list(make(str(folder), repeat=False, seed=1)),
        draw(2),
    )
    assert first == again and draw(None) == draw(0)
    assert keys(first) != keys(other) and sorted(keys(first)) == sorted(keys(other))
    assert {s['number'] for s in first}.isdisjoint(s['number'] for s in other)


def test_another_number_of_workers_cannot_continue(folder):
    dataset = make(str(folder))
    dataset.seek([(0, 1)] * 2, 2)
    with pytest.raises(ValueError, match='had 2 loader workers, this one has 1'):
        iter(dataset)


def test_length_is_endless_or_unknown(folder):
    assert len(make(str(folder))) > 10**12
    with pytest.raises(TypeError, match='length of a pass is not known'):
        len(make(str(folder), repeat=False))


@pytest.mark.parametrize('shards', ['', 'x-{0..3}.tar', 'typo.tar', []])
def test_no_shards(tmp_path, shards):
    if isinstance(shards, str):
        shards = str(tmp_path / shards)
    with pytest.raises(
        (FileNotFoundError, ValueError), match=r'ends in \.tar|no file that exists'
    ):
        make(shards)


def test_builds_from_a_config(folder):
    dataset = DATASETS.build(
        dict(type='sapiens2_mm.TarShardDataset', shards=str(folder), pipeline=[])
    )
    assert next(iter(dataset))['img'].dtype == np.uint8
