"""Images and masks of body parts, any class list [mmseg]."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from mmengine.logging import print_log
from mmseg.datasets import BaseSegDataset

from sapiens2_mm.registry import DATASETS

from ..checking.doubts import class_doubts, log_doubts
from ..guided_dataset import GuidedDataset
from ..io.folder import (
    IMAGE_SUFFIXES,
    check_complete,
    check_folders,
    files_by_name,
    without_suffix,
)
from ..io.json_file import Id, check_records, load_json, load_names
from ..io.label_image import read_label_image
from .label_map import compose_label_map, label_lookup
from .seg_classes import METAINFO_KEYS, check_classes, flip_pairs, make_palette

_NUM_PROBED_MASKS = 8


@DATASETS.register_module()
class SegDataset(GuidedDataset, BaseSegDataset):
    """Folders of images and masks with equal names, for an own class list::

        data_root/rgb/NAME.jpg      data_prefix['img_path'], any usual image type
        data_root/seg/NAME.png      data_prefix['seg_map_path'], class ids as pixels

    The classes are those of ``metainfo['classes']``; the first is taken for the
    background. Folders may have subfolders. Without ``seg_map_path`` (or with None)
    the images have no masks, as for prediction.

    Args:
        ann_file: which images to use. Empty: all of the folder; ``.txt``: a name per
            line; ``.json``: COCO-style (``images`` with ``file_name``) or the official
            list of samples with ``sample_id``, which is sorted by ``session_id``,
            ``camera_id`` and ``frame_number``. Names may contain the image folder and
            the suffix, or not.
        metainfo: ``classes``; optional ``palette`` (RGB), and ``swap_classes``: pairs
            of names that change places in a mirrored picture.
        data_prefix: folders, by default ``dict(img_path='rgb', seg_map_path='seg')``.
        label_map: pixel value -> index of a class or ``ignore_index``, where masks do
            not hold class ids, such as ``{0: 0, 255: 1}``. Any other value is an error.
        reduce_zero_label: first 0 becomes ignored and other values drop by one.
        in_the_wild: samples keep their background: ``RandomBackground`` skips them.
            False only where no pixel of a person is labeled as class 0, which it would
            paint over; the masks of an own class list rarely are like that.
        img_suffix: end of the images' names, such as ``'_photo.jpg'``; None takes
            any usual image type.
        seg_map_suffix: end of the masks' names, such as ``'_mask.png'``.
        ignore_index: pixel value, and label, that neither loss nor metric counts.
        **kwargs: arguments of ``GuidedDataset`` and mmengine's ``BaseDataset``.

    Raises:
        FileNotFoundError: if a folder, list, image or mask is missing.
        ValueError: for a faulty class list or map, or no image at all.
    """

    def __init__(
        self,
        ann_file: str = '',
        metainfo: dict | None = None,
        data_prefix: dict[str, str | None] | None = None,
        label_map: Mapping[int, int] | None = None,
        reduce_zero_label: bool = False,
        in_the_wild: bool = True,
        img_suffix: str | None = None,
        seg_map_suffix: str = '.png',
        ignore_index: int = 255,
        **kwargs: Any,
    ) -> None:
        if label_map is not None and reduce_zero_label:
            raise ValueError('SegDataset: label_map excludes reduce_zero_label')
        if ignore_index not in range(256):
            raise ValueError(f'ignore_index must be 0 to 255, got {ignore_index}')
        if data_prefix is None:
            data_prefix = dict(img_path='rgb', seg_map_path='seg')
        data_prefix = {k: v for k, v in data_prefix.items() if v is not None}
        check_folders(data_prefix, ('img_path', 'seg_map_path'), type(self).__name__)
        self._image_folder = data_prefix.get('img_path', '')
        self._image_suffixes = (img_suffix,) if img_suffix else IMAGE_SUFFIXES
        self._raw_label_map = label_map
        self.in_the_wild = in_the_wild
        super().__init__(
            ann_file=ann_file,
            metainfo=metainfo,
            data_prefix={'img_path': '', **data_prefix},
            img_suffix=img_suffix,
            seg_map_suffix=seg_map_suffix,
            reduce_zero_label=reduce_zero_label,
            ignore_index=ignore_index,
            **kwargs,
        )

    @classmethod
    def _load_metainfo(cls, metainfo: Mapping | None = None) -> dict:
        if unknown := sorted(set(metainfo or ()) - set(METAINFO_KEYS)):
            raise ValueError(
                f'{cls.__name__}: unknown metainfo {unknown}, expected {METAINFO_KEYS}'
            )
        meta = {'classes': None, **super()._load_metainfo(metainfo)}
        vocabulary = cls.METAINFO.get('classes', meta['classes'])
        check_classes(meta['classes'], vocabulary, cls.__name__)
        meta['palette'] = make_palette(
            meta['classes'], meta.get('palette'), cls.METAINFO
        )
        return meta

    def get_label_map(self, new_classes: Sequence[str]) -> dict[int, int] | None:
        """Pixel value -> class, all maps in one; None if pixels hold class ids."""
        self._metainfo['flip_pairs'] = flip_pairs(
            new_classes,
            self._metainfo.get('swap_classes'),
            self.METAINFO.get('classes', new_classes),
            self.ignore_index,
        )
        swap_classes = self._metainfo.get('swap_classes')
        self.doubts = list(class_doubts(new_classes, swap_classes))
        log_doubts(type(self).__name__, self.doubts)
        return compose_label_map(
            self._raw_label_map,
            self.METAINFO.get('classes', new_classes),
            new_classes,
            self.ignore_index,
        )

    def _update_palette(self) -> list[tuple[int, int, int]]:
        return self._metainfo['palette']  # _load_metainfo made it fit the classes

    def load_data_list(self) -> list[dict[str, Any]]:
        """One dict per image, as ``LoadImage`` and ``LoadSegAnnotations`` read it."""
        folders = self.data_prefix
        images = files_by_name(
            folders['img_path'], self._image_suffixes, self.backend_args
        )
        names = self._listed_names() if self.ann_file else sorted(images)
        check_complete(names, images, 'image', folders['img_path'])
        masks = dict.fromkeys(names)
        if 'seg_map_path' in folders:
            masks = files_by_name(
                folders['seg_map_path'], (self.seg_map_suffix,), self.backend_args
            )
            kind = f'mask (NAME{self.seg_map_suffix})'
            check_complete(names, masks, kind, folders['seg_map_path'])
        elif not self.test_mode:
            raise ValueError(f'{type(self).__name__}: training needs seg_map_path')
        shared = dict(
            label_map=self.label_map,
            reduce_zero_label=self.reduce_zero_label,
            num_classes=len(self._metainfo['classes']),
            ignore_index=self.ignore_index,
            flip_pairs=self._metainfo['flip_pairs'],
            in_the_wild=self.in_the_wild,
        )
        data_list = [
            dict(
                img_path=images[name],
                seg_map_path=masks[name],
                sample_id=name,
                seg_fields=[],
                **shared,
            )
            for name in names
        ]
        self._probe(data_list)
        return data_list

    def _listed_names(self) -> list[str]:
        """Names without suffix, as ``ann_file`` lists them."""
        if self.ann_file.lower().endswith('.json'):
            content = load_json(self.ann_file, self.backend_args)
            names = _json_names(content, self.ann_file)
        else:
            names = load_names(self.ann_file, self.backend_args)
        if not names:
            raise ValueError(f'{type(self).__name__}: no image in {self.ann_file}')
        return [self._plain_name(name) for name in names]

    def _plain_name(self, name: str) -> str:
        """``rgb/a/b.jpg`` -> ``a/b``, with ``rgb`` the image folder."""
        folder = self._image_folder.rstrip('/') + '/'
        if folder != '/' and name.startswith(folder):
            name = name[len(folder) :]
        return without_suffix(str(PurePosixPath(name)), self._image_suffixes)

    def _probe(self, data_list: list[dict]) -> None:
        """Warn if some masks suggest that the foreground is stored as ignored."""
        paths = [d['seg_map_path'] for d in data_list if d['seg_map_path']]
        paths = paths[:: max(1, len(paths) // _NUM_PROBED_MASKS)][:_NUM_PROBED_MASKS]
        classes = self._metainfo['classes']
        lookup = label_lookup(
            len(classes), self.label_map, self.reduce_zero_label, self.ignore_index
        )
        values: set[int] = set()
        for path in paths:
            try:
                mask = read_label_image(path, backend_args=self.backend_args)
            except ValueError:  # colors, or unreadable: the loading step tells
                return
            values.update(np.unique(mask).tolist())
        labels = {int(lookup[value]) for value in values}
        ignored = self.ignore_index
        only_ignored = {ignored} <= labels <= {0, ignored}
        if ignored in values and only_ignored and len(classes) > 1:
            print_log(
                f'{type(self).__name__}: in {len(paths)} masks of '
                f'{self.data_prefix["seg_map_path"]} class 1 ({classes[1]}) and any '
                f'other but 0 never occurs; {ignored} is ignored. If it means the '
                f'foreground, set label_map={{0: 0, {ignored}: 1}}',
                logger='current',
                level=logging.WARNING,
            )


def _json_names(content: Any, path: str) -> list[str]:
    """Names of a COCO-style dict or of an official sample list."""
    coco = isinstance(content, dict) and 'images' in content
    entries, key = (content['images'], 'file_name') if coco else (content, 'sample_id')
    where = f'{path}: {"image" if coco else "sample"}'
    check_records(entries, {key: Id}, where)
    if not coco:
        order = ('session_id', 'camera_id', 'frame_number')
        entries = sorted(entries, key=lambda s: [_sortable(s.get(k)) for k in order])
    return [str(entry[key]) for entry in entries]


def _sortable(value: Any) -> tuple[float, str]:
    """Numbers by value, then strings; a missing key first."""
    if value is None:
        return (-np.inf, '')
    if isinstance(value, str):
        return (float(value), '') if value.isdecimal() else (np.inf, value)
    return (float(value), '')
