"""A stream of images from WebDataset tar shards."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import braceexpand
import numpy as np
from mmengine.dataset import Compose
from mmengine.dist import get_dist_info
from torch.utils.data import IterableDataset, get_worker_info
from webdataset.gopen import gopen
from webdataset.tariterators import group_by_keys, tar_file_expander

from sapiens2_mm.registry import DATASETS

from ..io.folder import IMAGE_SUFFIXES
from ..io.image import decode_image
from .skipping import Skip, check_skips, read_or_skip

IMAGE_KEYS = tuple(suffix[1:] for suffix in IMAGE_SUFFIXES)
Position = tuple[int, int, int]  # (pass, block, samples read of the block)


@DATASETS.register_module()
class TarShardDataset(IterableDataset):
    """Images for pretraining from tar files written in the WebDataset layout.

    Every pass has its own order of shards and deals them out to the readers, which
    are the loader workers of all processes: a shard, and so an image, is read once per
    pass. A reader opens ``shards_per_block`` of its shards at a time, draws from them
    at random into a buffer, and from the buffer at random.

    Each sample carries its ``position``. A run that gives the positions of the last
    samples it used to ``seek`` continues as if it had never stopped; blocks that are
    done are not read again. All randomness depends on the seed, the reader, and the
    position.

    The pipeline starts with ``img`` (H, W, 3) uint8 BGR, ``img_path`` (shard and key),
    ``rng``, ``skipped`` as in ``UnlabeledImageDataset``, and ``position``: (reader
    within the process, pass, block, samples of the block).

    Args:
        shards: a folder of ``.tar`` files, a path or URL with ``{000..123}`` ranges,
            or a list of such.
        pipeline: transforms.
        shuffle_buffer: samples in the buffer of a reader, still encoded.
        shards_per_block: shards that a reader has open.
        min_short_side: smaller images are left out, pixels; 0 takes all.
        max_skips: unusable images in a row that end the run.
        repeat: go on with the next pass for ever; else stop after one.
        seed: of all randomness; None is that of the run, as for ``DrawSampler``.

    Raises:
        ValueError: if there are fewer shards than readers.
        RuntimeError: if ``max_skips`` is exceeded.
    """

    metainfo: dict = {}

    def __init__(
        self,
        shards: str | Sequence[str],
        pipeline: Sequence[dict],
        shuffle_buffer: int = 1000,
        shards_per_block: int = 4,
        min_short_side: int = 0,
        max_skips: int = 100,
        repeat: bool = True,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.shards = _list_shards(shards)
        self.pipeline = Compose(pipeline)
        self.shuffle_buffer = shuffle_buffer
        self.shards_per_block = shards_per_block
        self.min_short_side = min_short_side
        self.max_skips = max_skips
        self.repeat = repeat
        self.seed = seed
        # Asked here: a worker process does not know.
        self.rank, self.world_size = get_dist_info()
        self.positions: list[Position] = []
        self.first_worker = 0

    def seek(self, positions: Sequence[Position], num_batches: int) -> None:
        """Let the next iterator continue a run.

        Args:
            positions: of the last sample used of each reader of this process.
            num_batches: that the run had used; says whose turn it is.
        """
        self.positions = [tuple(position) for position in positions]
        self.first_worker = num_batches % len(self.positions)

    def __len__(self) -> int:
        """A number beyond any run: the stream has no end, but mmengine asks.

        Raises:
            TypeError: if the stream ends; its length is not known before.
        """
        if not self.repeat:
            raise TypeError('TarShardDataset: the length of a pass is not known')
        return sys.maxsize

    def __iter__(self) -> Iterator[dict]:
        worker = get_worker_info()
        num_workers = worker.num_workers if worker else 1
        # A loader starts with its worker 0; let that be whose turn it is.
        reader = ((worker.id if worker else 0) + self.first_worker) % num_workers
        if self.positions and len(self.positions) != num_workers:
            raise ValueError(
                f'TarShardDataset: the run to continue had {len(self.positions)} '
                f'loader workers, this one has {num_workers}; set num_workers'
            )
        return self._read(reader, num_workers)

    def _read(self, reader: int, num_workers: int) -> Iterator[dict]:
        number = self.rank * num_workers + reader  # among all readers
        num_readers = self.world_size * num_workers
        if len(self.shards) < num_readers:
            raise ValueError(
                f'TarShardDataset: {len(self.shards)} shards cannot be shared by '
                f'{num_readers} readers ({self.world_size} processes x {num_workers})'
            )
        start = self.positions[reader] if self.positions else (0, 0, 0)
        skipped: list[Skip] = []
        for number_of_pass, block, shards in self._schedule(number, num_readers, start):
            seed = [self.seed or 0, number, number_of_pass, block]
            for count, sample in enumerate(self._mix(shards, seed, skipped), 1):
                if (number_of_pass, block, count) <= start:
                    continue  # used before the run was stopped
                name, image = self._decode(sample, skipped)
                if image is None:
                    check_skips(skipped, self.max_skips, type(self).__name__)
                    continue
                results = dict(img=image, img_path=name)
                results['rng'] = np.random.default_rng([*seed, count])
                results['position'] = (reader, number_of_pass, block, count)
                results['skipped'] = skipped.copy()
                skipped.clear()
                yield self.pipeline(results)
            check_skips(skipped, self.max_skips, type(self).__name__)

    def _schedule(
        self, number: int, num_readers: int, start: Position
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """Passes, blocks and their shards (indices) for one of the readers."""
        number_of_pass, first_block, _ = start
        while True:
            order = np.random.default_rng([self.seed or 0, number_of_pass])
            own = order.permutation(len(self.shards))[number::num_readers]
            for begin in range(0, len(own), self.shards_per_block):
                block = begin // self.shards_per_block
                if block >= first_block:
                    shards = own[begin : begin + self.shards_per_block]
                    yield number_of_pass, block, shards
            if not self.repeat:
                return
            number_of_pass, first_block = number_of_pass + 1, 0

    def _mix(
        self, shards: np.ndarray, seed: list[int], skipped: list[Skip]
    ) -> Iterator[dict]:
        """Encoded samples of some shards in random order.

        A shard that breaks off or is empty is noted in ``skipped``; what was read of
        it counts.
        """
        rng = np.random.default_rng(seed)

        def note(error: Exception) -> bool:
            skipped.append((self.shards[shard], repr(error)))
            return False

        streams, filled = [], set()
        for shard in shards:
            streams.append((shard, _read_shard(self.shards[shard], note)))
        buffer: list[dict] = []
        while streams:
            place = rng.integers(len(streams))
            shard, stream = streams[place]
            sample = next(stream, None)
            if sample is None:
                del streams[place]
                if shard not in filled:
                    skipped.append((self.shards[shard], 'no sample'))
                continue
            filled.add(shard)
            if len(buffer) < self.shuffle_buffer:
                buffer.append(sample)
            else:
                chosen = rng.integers(len(buffer))
                buffer[chosen], sample = sample, buffer[chosen]
                yield sample
        rng.shuffle(buffer)
        yield from buffer

    def _decode(
        self, sample: dict, skipped: list[Skip]
    ) -> tuple[str, np.ndarray | None]:
        """Name and image of a sample; no image if it is left out."""
        name = f'{sample["__url__"]}: {sample["__key__"]}'
        key = next((key for key in IMAGE_KEYS if key in sample), None)
        if key is None:
            skipped.append((name, f'no image among {sorted(sample)}'))
            return name, None
        name = f'{name}.{key}'
        return name, read_or_skip(
            lambda: decode_image(sample[key], name), name, self.min_short_side, skipped
        )


def _read_shard(url: str, handler: Callable[[Exception], bool]) -> Iterator[dict]:
    """Samples of one tar file: a dict from extension to bytes, and ``__key__``."""
    try:
        stream = gopen(url)
    except OSError as err:
        handler(err)
        return
    with closing(stream):
        files = tar_file_expander([dict(url=url, stream=stream)], handler=handler)
        yield from group_by_keys(files, handler=handler)


def _list_shards(shards: str | Sequence[str]) -> list[str]:
    """Paths or URLs, from a folder, a pattern, or a list of those."""
    if not isinstance(shards, str):
        return [name for entry in shards for name in _list_shards(entry)]
    if Path(shards).is_dir():
        found = sorted(str(path) for path in Path(shards).rglob('*.tar'))
    else:
        found = list(braceexpand.braceexpand(shards))
    if not found:
        raise ValueError(f'TarShardDataset: no .tar file in the folder {shards}')
    return found
