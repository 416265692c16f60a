"""A stream of images from WebDataset tar shards."""

import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import count, groupby

import numpy as np
from mmengine.dataset import Compose
from mmengine.dist import get_dist_info
from torch.utils.data import IterableDataset, get_worker_info
from webdataset.tariterators import base_plus_ext

from sapiens2_mm.registry import DATASETS

from ..io.folder import IMAGE_SUFFIXES
from ..io.image import decode_image
from .shard_list import list_shards
from .skipping import Skip, check_skips, planned_reduction, read_or_skip
from .tar_file import read_members

Position = tuple[int, int]  # (block, images read of the block)


@DATASETS.register_module()
class TarShardDataset(IterableDataset):
    """Images for pretraining from tar files written in the WebDataset layout.

    The passes over the shards, each in an order of its own, follow each other without
    a gap. Readers, which are the loader workers of all processes, take turns at that
    row: a shard, and so an image, is read once per pass, and all readers are in the
    same pass, however many they are. A reader opens ``shards_per_block`` shards at a
    time, draws from them at random into a buffer, and from the buffer at random.

    Names are read by the rules of WebDataset: up to the first dot of the file name
    they are the key of a sample, the rest names its field. The image of a sample is
    its ``jpg``, ``png`` or the like, else its ``name.jpg``; further ones of the same
    kind are reported and left out, unless ``image_keys`` asks for them. A shard that
    cannot be read to its end, or whose server or command sends nothing for 60 s or less
    than 1000 bytes/s, is tried again, then reported; what was read of it counts.

    Each sample carries its ``position``. A run that gives the positions of the last
    samples it used to ``seek`` continues as if it had never stopped; blocks that are
    done are not read again. All randomness depends on the seed, the reader, and the
    position.

    The pipeline starts with ``img`` (H, W, 3) uint8 BGR, ``img_path`` (shard and
    member), ``rng``, ``draw`` and ``skipped`` as in ``UnlabeledImageDataset``, and
    ``position``: (reader within the process, block, images of the block).

    Args:
        shards: a folder of ``.tar`` files, a path, command (``pipe:...``) or URL with
            ``{000..123}`` ranges, or a list of such.
        pipeline: transforms.
        image_keys: shell patterns of the fields that are images, such as ``'*jpg'``;
            each is an image of its own. None takes one per sample, see above.
        num_retries: further tries of a shard that fails, without a new image.
        shuffle_buffer: images in the buffer of a reader, still encoded.
        shards_per_block: shards that a reader has open.
        min_short_side: smaller images are left out, pixels; 0 takes all.
        max_skips: unusable images in a row that end the run.
        repeat: go on with the next pass for ever; else stop after one.
        seed: of all randomness; None is that of the run, as for ``DrawSampler``.

    Raises:
        FileNotFoundError, ValueError: if there is no shard.
        RuntimeError: if ``max_skips`` is exceeded.
    """

    metainfo: dict = {}

    def __init__(
        self,
        shards: str | Sequence[str],
        pipeline: Sequence[dict],
        image_keys: Sequence[str] | None = None,
        num_retries: int = 2,
        shuffle_buffer: int = 1000,
        shards_per_block: int = 4,
        min_short_side: int = 0,
        max_skips: int = 100,
        repeat: bool = True,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.shards = list_shards(shards)
        self.pipeline = Compose(pipeline)
        self.image_keys = image_keys
        self.num_retries = num_retries
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
        start = self.positions[reader] if self.positions else (0, 0)
        skipped: list[Skip] = []
        for block, shards in self._blocks(number, num_readers, start[0]):
            rng = np.random.default_rng([self.seed or 0, number, block])
            for place, (name, data) in enumerate(self._mix(shards, rng, skipped), 1):
                if (block, place) <= start:
                    continue  # used before the run was stopped
                draw = number, block, place
                results = dict(img_path=name, draw=draw)
                results['rng'] = np.random.default_rng([self.seed or 0, *draw])
                image = read_or_skip(
                    partial(decode_image, data, name),
                    name,
                    self.min_short_side,
                    skipped,
                    planned_reduction(self.pipeline, results),
                )
                if image is None:
                    check_skips(skipped, self.max_skips, type(self).__name__)
                    continue
                results['img'] = image
                results['position'] = (reader, block, place)
                results['skipped'] = skipped.copy()
                skipped.clear()
                yield self.pipeline(results)
            check_skips(skipped, self.max_skips, type(self).__name__)

    def _blocks(
        self, number: int, num_readers: int, first: int
    ) -> Iterator[tuple[int, list[str]]]:
        """Blocks of one of the readers, from the first wanted on, and their shards."""
        for block in count(first):
            begin = block * self.shards_per_block
            turns = range(begin, begin + self.shards_per_block)
            places = [turn * num_readers + number for turn in turns]
            if not self.repeat:
                places = [place for place in places if place < len(self.shards)]
                if not places:
                    return
            yield block, [self._shard_at(place) for place in places]

    def _shard_at(self, place: int) -> str:
        """A shard by its place in the row of all passes."""
        number_of_pass, index = divmod(place, len(self.shards))
        rng = np.random.default_rng([self.seed or 0, number_of_pass])
        return self.shards[rng.permutation(len(self.shards))[index]]

    def _mix(
        self, shards: list[str], rng: np.random.Generator, skipped: list[Skip]
    ) -> Iterator[tuple[str, bytes]]:
        """Encoded images of some shards in random order."""
        streams = [self._images(shard, skipped) for shard in shards]
        buffer: list[tuple[str, bytes]] = []
        while streams:
            place = rng.integers(len(streams))
            image = next(streams[place], None)
            if image is None:
                del streams[place]
            elif len(buffer) < self.shuffle_buffer:
                buffer.append(image)
            else:
                chosen = rng.integers(len(buffer))
                buffer[chosen], image = image, buffer[chosen]
                yield image
        rng.shuffle(buffer)
        yield from buffer

    def _images(self, shard: str, skipped: list[Skip]) -> Iterator[tuple[str, bytes]]:
        """Names and contents of the images of a shard, undecoded.

        Samples without an image, further images, and a shard that fails or has no
        sample are noted in ``skipped``.
        """
        members = read_members(shard, self._is_image, self.num_retries)
        samples = groupby(members, key=lambda member: base_plus_ext(member[0])[0])
        is_empty = True
        try:
            for key, files in samples:
                if key is None:  # a name without a field
                    continue
                is_empty = False
                for name, data in self._images_of(shard, key, list(files), skipped):
                    yield f'{shard}: {name}', data
        except OSError as err:
            skipped.append((shard, str(err)))
        else:
            if is_empty:
                skipped.append((shard, 'no sample'))

    def _images_of(
        self,
        shard: str,
        key: str,
        files: list[tuple[str, bytes]],
        skipped: list[Skip],
    ) -> list[tuple[str, bytes]]:
        images = [file for file in files if self._is_image(file[0])]
        if not images:
            fields = sorted(_field(name) for name, _ in files)
            skipped.append((f'{shard}: {key}', f'no image among {fields}'))
        if self.image_keys is not None:
            return images
        plain = [file for file in images if '.' not in _field(file[0])]
        images = sorted(plain or images, key=_suffix_rank)
        for name, _ in images[1:]:
            reason = f'{images[0][0]} is the image of this sample; see image_keys'
            skipped.append((f'{shard}: {name}', reason))
        return images[:1]

    def _is_image(self, name: str) -> bool:
        if self.image_keys is None:
            return f'.{_field(name)}'.endswith(IMAGE_SUFFIXES)
        return any(fnmatchcase(_field(name), pattern) for pattern in self.image_keys)


def _field(name: str) -> str:
    """Of the name of a member: what follows the first dot of its file name."""
    return (base_plus_ext(name)[1] or '').lower()


def _suffix_rank(file: tuple[str, bytes]) -> int:
    field = f'.{_field(file[0])}'
    return [field.endswith(suffix) for suffix in IMAGE_SUFFIXES].index(True)
