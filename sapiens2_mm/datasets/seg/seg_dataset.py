"""Images and masks of body parts, any class list [mmseg]."""

import logging
import os.path as osp
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from mmengine.fileio import exists, list_dir_or_file, list_from_file
from mmengine.logging import print_log
from mmseg.datasets import BaseSegDataset

from sapiens2_mm.registry import DATASETS

from ..io.json_file import check_entry, check_id, load_json
from ..io.label_image import read_label_image
from .label_map import compose_label_map, label_table
from .seg_classes import check_classes, check_seg_metainfo, flip_pairs, make_palette

IMAGE_SUFFIXES = ('.jpg', '.jpeg', '.png', '.bmp', '.tif', '.tiff', '.webp')
_NUM_PROBED_MASKS = 8


@DATASETS.register_module()
class SegDataset(BaseSegDataset):
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
        in_the_wild: marks the samples as such: ``RandomBackground`` skips them.
        img_suffix: end of the images' names, such as ``'_photo.jpg'``; None takes
            any usual image type.
        seg_map_suffix: end of the masks' names, such as ``'_mask.png'``.
        ignore_index: pixel value, and label, that neither loss nor metric counts.
        **kwargs: arguments of mmengine's ``BaseDataset``.

    Raises:
        FileNotFoundError: if a folder, list, image or mask is missing.
        ValueError, TypeError: for a faulty class list or map, or no image at all.
    """

    def __init__(
        self,
        ann_file: str = '',
        metainfo: dict | None = None,
        data_prefix: dict[str, str | None] | None = None,
        label_map: Mapping[int, int] | None = None,
        reduce_zero_label: bool = False,
        in_the_wild: bool = False,
        img_suffix: str | None = None,
        seg_map_suffix: str = '.png',
        ignore_index: int = 255,
        **kwargs: Any,
    ) -> None:
        if label_map is not None and reduce_zero_label:
            raise ValueError(
                f'{type(self).__name__}: give either a map of pixel values or '
                'reduce_zero_label; the map can do both'
            )
        if ignore_index not in range(256):
            raise ValueError(
                f'{type(self).__name__}: ignore_index must be 0 to 255, got '
                f'{ignore_index}; labels have 8 bits'
            )
        if data_prefix is None:
            data_prefix = dict(img_path='rgb', seg_map_path='seg')
        data_prefix = {k: v for k, v in data_prefix.items() if v is not None}
        if unknown := set(data_prefix) - {'img_path', 'seg_map_path'}:
            raise ValueError(
                f'{type(self).__name__}: data_prefix has unknown folders '
                f"{sorted(unknown)}; use 'img_path' and 'seg_map_path'"
            )
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
        check_seg_metainfo(metainfo, cls.__name__)
        meta = super()._load_metainfo(metainfo)
        if meta.get('classes') is None:
            raise ValueError(
                f"{cls.__name__}: metainfo needs classes=('background', ...)"
            )
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
        images = self._files(self.data_prefix['img_path'], self._image_suffixes)
        masks = None
        if 'seg_map_path' in self.data_prefix:
            masks = self._files(
                self.data_prefix['seg_map_path'], (self.seg_map_suffix,)
            )
        elif not self.test_mode:
            raise ValueError(
                f'{type(self).__name__}: training needs masks; set '
                "data_prefix['seg_map_path']"
            )
        names = self._listed_names() if self.ann_file else sorted(images)
        if not names:
            raise ValueError(
                f'{type(self).__name__}: no image in '
                f'{self.ann_file or self.data_prefix["img_path"]}'
            )
        self._check_complete(names, images, masks)
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
                seg_map_path=masks[name] if masks is not None else None,
                sample_id=name,
                seg_fields=[],
                **shared,
            )
            for name in names
        ]
        self._probe(data_list)
        return data_list

    def _files(self, folder: str, suffixes: Sequence[str]) -> dict[str, str]:
        """Name without suffix -> path, of all files of a folder."""
        if '://' not in folder and not osp.isdir(folder):
            raise FileNotFoundError(
                f'{type(self).__name__}: folder {folder!r} does not exist; check '
                'data_root and data_prefix'
            )
        files: dict[str, str] = {}
        for name in list_dir_or_file(
            folder, list_dir=False, recursive=True, backend_args=self.backend_args
        ):
            key = _without_suffix(name, suffixes)
            if key == name:
                continue
            path = osp.join(folder, name)
            if key in files:
                raise ValueError(
                    f'{type(self).__name__}: {files[key]} and {path} have one name; '
                    'their mask cannot be told'
                )
            files[key] = path
        return files

    def _listed_names(self) -> list[str]:
        if not exists(self.ann_file, self.backend_args):
            raise FileNotFoundError(
                f'{type(self).__name__}: ann_file {self.ann_file!r} does not exist'
            )
        if self.ann_file.lower().endswith('.json'):
            content = load_json(self.ann_file, self.backend_args)
            names = _json_names(content, self.ann_file)
        else:
            lines = list_from_file(self.ann_file, backend_args=self.backend_args)
            names = [line.strip('\ufeff\n\r\t ') for line in lines]  # Windows' BOM
            names = [name for name in names if name]
        return [self._plain_name(name) for name in names]

    def _plain_name(self, name: str) -> str:
        """``rgb/a/b.jpg`` -> ``a/b``, with ``rgb`` the image folder."""
        folder = self._image_folder.rstrip('/') + '/'
        if folder != '/' and name.startswith(folder):
            name = name[len(folder) :]
        return _without_suffix(str(PurePosixPath(name)), self._image_suffixes)

    def _check_complete(
        self, names: list[str], images: dict[str, str], masks: dict[str, str] | None
    ) -> None:
        for kind, key, files in (
            ('image', 'img_path', images),
            ('mask', 'seg_map_path', masks),
        ):
            if files is None:
                continue
            if missing := [name for name in names if name not in files]:
                raise FileNotFoundError(
                    f'{type(self).__name__}: {len(missing)} of {len(names)} samples '
                    f'have no {kind} in {self.data_prefix[key]}, such as {missing[:3]}'
                    + (f' (suffix {self.seg_map_suffix})' if kind == 'mask' else '')
                )

    def _probe(self, data_list: list[dict]) -> None:
        """Warn if some masks suggest that the foreground is stored as ignored."""
        paths = [d['seg_map_path'] for d in data_list if d['seg_map_path']]
        paths = paths[:: max(1, len(paths) // _NUM_PROBED_MASKS)][:_NUM_PROBED_MASKS]
        classes = self._metainfo['classes']
        table = label_table(
            len(classes), self.label_map, self.reduce_zero_label, self.ignore_index
        )
        values: set[int] = set()
        for path in paths:
            try:
                mask = read_label_image(path, backend_args=self.backend_args)
            except ValueError:  # colours, or unreadable: the loading step tells
                return
            values.update(np.unique(mask).tolist())
        labels = {int(table[value]) for value in values}
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


def _without_suffix(name: str, suffixes: Sequence[str]) -> str:
    for suffix in suffixes:
        if name.lower().endswith(suffix.lower()):
            return name[: -len(suffix)]
    return name


def _json_names(content: Any, path: str) -> list[str]:
    """Names of a COCO-style dict or of an official sample list."""
    coco = isinstance(content, dict) and 'images' in content
    entries, key = (content['images'], 'file_name') if coco else (content, 'sample_id')
    if not isinstance(entries, list):
        raise ValueError(
            f'{path}: expected a COCO-style dict with "images", or a list of samples '
            'that each have a "sample_id"'
        )
    for index, entry in enumerate(entries):
        where = f'{path}: {"image" if coco else "sample"} {index}'
        check_entry(entry, (key,), where)
        check_id(entry[key], where)
    if not coco:
        order = ('session_id', 'camera_id', 'frame_number')
        entries = sorted(entries, key=lambda s: [_sortable(s.get(k)) for k in order])
    return [str(entry[key]) for entry in entries]


def _sortable(value: Any) -> tuple[float, str]:
    """Numbers by value, then texts; a missing key first."""
    if value is None:
        return (-np.inf, '')
    if isinstance(value, str):
        return (float(value), '') if value.isdecimal() else (np.inf, value)
    return (float(value), '')
