"""Images without labels: a folder or a list of files."""

from os.path import join

import numpy as np
from mmengine.logging import print_log
from mmpretrain.datasets import CustomDataset

from sapiens2_mm.registry import DATASETS

from ..io.folder import IMAGE_SUFFIXES, list_images
from ..io.image import read_image
from ..io.json_file import check_record, check_records, load_json, load_names
from .skipping import Skip, check_skips, planned_reduction, read_or_skip


@DATASETS.register_module()
class UnlabeledImageDataset(CustomDataset):
    """Images for pretraining.

    All images under ``data_root``, at any depth, or those that ``ann_file`` names,
    relative to ``data_root`` or absolute: one path per line, or the ``file_name`` of
    the ``images`` of a COCO-style ``.json``. Annotations are not used. The log says how
    many there are.

    The dataset reads the image itself: its pipeline starts with ``img`` (H, W, 3)
    uint8 BGR, ``img_path``, the numpy generator ``rng``, the numbers ``draw`` that tell
    the sample from all others of the run, and ``skipped``, the list of (name, reason)
    of images that could not be used and that this one replaces.
    It takes an index, or the pair (index, draw) of ``DrawSampler``; a draw gives the
    same ``rng``, and therefore the same views, whenever it is asked for.

    Args:
        data_root: folder.
        ann_file: list of images, relative to ``data_root`` or absolute; empty to search
            the folder.
        min_short_side: smaller images are left out, pixels; 0 takes all. The paper
            asks for 384.
        max_skips: unusable images in a row that end the run.
        seed: of the generators; None is that of the run, as for ``DrawSampler``.
        **kwargs: of mmpretrain's ``CustomDataset``.

    Raises:
        FileNotFoundError: if the folder holds no image.
        RuntimeError: if the list names no image, or ``max_skips`` is exceeded.
        ValueError: if a ``.json`` has no list of images.
    """

    def __init__(
        self,
        data_root: str = '',
        ann_file: str = '',
        min_short_side: int = 0,
        max_skips: int = 100,
        seed: int | None = None,
        **kwargs,
    ) -> None:
        self.min_short_side = min_short_side
        self.max_skips = max_skips
        self.seed = seed
        kwargs = {'extensions': IMAGE_SUFFIXES, **kwargs}
        super().__init__(data_root, ann_file=ann_file, with_label=False, **kwargs)

    def load_data_list(self) -> list[dict]:
        """One ``img_path`` per image; empty lines of a list are ignored."""
        source = self.ann_file or self.img_prefix
        if self.ann_file:
            names = _listed_images(self.ann_file)
            images = [dict(img_path=join(self.img_prefix, name)) for name in names]
        else:
            paths = list_images(self.img_prefix, suffixes=self.extensions)
            images = [dict(img_path=path) for path in paths]
        if not images:
            raise RuntimeError(f'UnlabeledImageDataset: {source} names no image')
        print_log(f'pretraining on {len(images)} images of {source}', logger='current')
        return images

    def __getitem__(self, index: int | tuple[int, int]) -> dict:
        if not self._fully_initialized:
            self.full_init()
        if not isinstance(index, tuple):
            index = index, np.random.randint(2**31)
        index, draw = index
        rng = np.random.default_rng([self.seed or 0, draw])
        skipped: list[Skip] = []
        while True:
            results = {**self.get_data_info(index), 'rng': rng, 'draw': (draw,)}
            path = results['img_path']
            image = read_or_skip(
                lambda reduction, path=path: read_image(path, reduction=reduction),
                path,
                self.min_short_side,
                skipped,
                planned_reduction(self.pipeline, results),
            )
            if image is not None:
                break
            check_skips(skipped, self.max_skips, type(self).__name__)
            index = int(rng.integers(len(self)))
        return self.pipeline({**results, 'img': image, 'skipped': skipped})


def _listed_images(path: str) -> list[str]:
    """Names in a text file or in a COCO-style JSON."""
    if not path.endswith('.json'):
        return load_names(path)
    content = load_json(path)
    check_record(content, dict(images=list), path)
    check_records(content['images'], dict(file_name=str), f'{path}: image')
    return [image['file_name'] for image in content['images']]
