"""Images and their dense annotations in folders side by side."""

import os.path as osp
from collections.abc import Sequence
from typing import Any

from mmengine.dataset import BaseDataset

from sapiens2_mm.registry import DATASETS

from ..guided_dataset import GuidedDataset
from ..io.folder import IMAGE_SUFFIXES, check_complete, check_folders, files_by_name
from ..transforms.annotation_decoding import DECODERS
from ..transforms.base import check_choice

MAP_SUFFIXES = ('.npy', '.npz', '.png')
MASK_SUFFIXES = (*IMAGE_SUFFIXES, '.npy', '.npz')


@DATASETS.register_module()
class DenseFolderDataset(GuidedDataset, BaseDataset):
    """Folders of equally named files, the layout of the official fine-tuning guide::

        data_root/rgb/NAME.png                 mask/NAME.png
        normal/NAME.npy   depth/NAME.npy       albedo/NAME.png
        camera_intrinsics/NAME.txt             camera_extrinsics/NAME.txt
        seg/NAME_seg.npy                       alpha/NAME.png

    Maps may be ``.npy``, ``.npz`` or ``.png``, images any usual kind; folders may have
    subfolders. What the files hold is told by ``LoadDenseAnnotations``.

    Args:
        data_root: the folder above.
        fields: annotations that every sample must have: normal, depth, albedo, alpha
            (a matte, for ``LoadMatte``).
        with_camera: samples must have intrinsics; extrinsics are taken along if their
            folder exists.
        with_mask: samples must have a mask; else all pixels are valid.
        with_parts: samples must have a map of body parts, for the ``excluded_parts``
            of ``LoadDenseAnnotations``.
        depth_scale: meters of one step, for depth in integer PNG files.
        normal_signs: of x, y and z in the files, e.g. (1, -1, -1) where y points up
            and z to the camera.
        data_prefix: renames folders, e.g. ``dict(normal='normals')``. Where each person
            or sequence has folders of its own, a pattern such as ``'*/normal/*'``; the
            stars of all folders stand for the same.
        kwargs: see ``GuidedDataset`` and mmengine's ``BaseDataset``.

    Raises:
        FileNotFoundError: if a folder or a sample's file is missing, or there is no
            image; names folder and files.
        ValueError: for an unknown field or a sign that is none, and if two files of a
            folder have the same name, such as ``1.npy`` and a picture ``1.png`` of it.
    """

    FOLDERS = dict(
        img='rgb',
        mask='mask',
        normal='normal',
        depth='depth',
        albedo='albedo',
        alpha='alpha',
        intrinsics='camera_intrinsics',
        extrinsics='camera_extrinsics',
        parts='seg',
    )

    def __init__(
        self,
        data_root: str,
        fields: Sequence[str] = (),
        with_camera: bool = False,
        with_mask: bool = True,
        with_parts: bool = False,
        depth_scale: float | None = None,
        normal_signs: Sequence[int] | None = None,
        data_prefix: dict[str, str] | None = None,
        **kwargs,
    ) -> None:
        data_prefix = data_prefix or {}
        check_folders(data_prefix, self.FOLDERS, type(self).__name__)
        for field in fields:
            check_choice('DenseFolderDataset: field', field, [*DECODERS, 'alpha'])
        if normal_signs is not None and [*map(abs, normal_signs)] != [1, 1, 1]:
            raise ValueError(
                'DenseFolderDataset: normal_signs must be 1 or -1 for each of x, y and '
                f'z, such as (1, -1, -1), got {normal_signs!r}'
            )
        self.fields = tuple(fields)
        self.with_camera = with_camera
        self.with_mask = with_mask
        self.with_parts = with_parts
        self.units = dict(depth_scale=depth_scale, normal_signs=normal_signs)
        super().__init__(
            data_root=data_root, data_prefix=self.FOLDERS | data_prefix, **kwargs
        )

    def load_data_list(self) -> list[dict[str, Any]]:
        images = files_by_name(self.data_prefix['img'])
        wanted = dict.fromkeys(self.fields, MAP_SUFFIXES)
        if 'alpha' in wanted:
            wanted['alpha'] = MASK_SUFFIXES
        if self.with_mask:
            wanted['mask'] = MASK_SUFFIXES
        if self.with_parts:
            ends = [f'_seg{suffix}' for suffix in MAP_SUFFIXES]
            wanted['parts'] = (*ends, *MAP_SUFFIXES)
        if self.with_camera:
            wanted['intrinsics'] = ('.txt',)
            extrinsics = self.data_prefix['extrinsics']
            if '*' in extrinsics or osp.isdir(extrinsics):
                wanted['extrinsics'] = ('.txt',)
        files = {
            name: files_by_name(self.data_prefix[name], suffixes)
            for name, suffixes in wanted.items()
        }
        for name, found in files.items():
            check_complete(images, found, name, self.data_prefix[name])
        data_list = []
        for name, img_path in sorted(images.items()):
            info = {f'{key}_path': found[name] for key, found in files.items()}
            info['img_path'] = img_path
            info |= {key: unit for key, unit in self.units.items() if unit is not None}
            data_list.append(info)
        return data_list
