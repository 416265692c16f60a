"""Images and their dense annotations in folders side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mmengine.dataset import BaseDataset

from sapiens2_mm.registry import DATASETS

IMAGE_SUFFIXES = ('.png', '.jpg', '.jpeg', '.bmp', '.tif', '.tiff', '.webp')
MAP_SUFFIXES = ('.npy', '.npz', '.png')


@DATASETS.register_module()
class DenseFolderDataset(BaseDataset):
    """Folders of equally named files, the layout of the official fine-tuning guide::

        data_root/rgb/NAME.png                 mask/NAME.png
        normal/NAME.npy   depth/NAME.npy       albedo/NAME.png
        camera_intrinsics/NAME.txt             camera_extrinsics/NAME.txt
        seg/NAME_seg.npy

    Maps may be ``.npy``, ``.npz`` or ``.png``, images any usual kind; folders may have
    subfolders. What the files hold is told by ``LoadDenseAnnotations``.

    Args:
        data_root: the folder above.
        fields: annotations that every sample must have: normal, depth, albedo.
        with_camera: samples must have intrinsics; extrinsics are taken along if their
            folder exists.
        with_mask: samples must have a mask; else all pixels are valid.
        with_parts: samples must have a map of body parts, for the ``excluded_parts``
            of ``LoadDenseAnnotations``.
        depth_scale: metres of one step, for depth in integer PNG files.
        data_prefix: renames folders, e.g. ``dict(normal='normals')``.
        kwargs: see mmengine's ``BaseDataset``.

    Raises:
        FileNotFoundError: if a folder or a sample's file is missing, or there is no
            image; names folder and files.
        ValueError: if two files of a folder have the same name, such as ``1.npy`` and
            a picture ``1.png`` of it.
    """

    FOLDERS = dict(
        img='rgb',
        mask='mask',
        normal='normal',
        depth='depth',
        albedo='albedo',
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
        data_prefix: dict[str, str] | None = None,
        **kwargs,
    ) -> None:
        data_prefix = data_prefix or {}
        unknown = set(data_prefix) - set(self.FOLDERS)
        if unknown:
            raise ValueError(
                f'{type(self).__name__}: data_prefix has unknown folders '
                f'{sorted(unknown)}; use {sorted(self.FOLDERS)}'
            )
        self.fields = tuple(fields)
        self.with_camera = with_camera
        self.with_mask = with_mask
        self.with_parts = with_parts
        self.depth_scale = depth_scale
        super().__init__(
            data_root=data_root, data_prefix=self.FOLDERS | data_prefix, **kwargs
        )

    def load_data_list(self) -> list[dict[str, Any]]:
        images = _files_by_name(Path(self.data_prefix['img']), IMAGE_SUFFIXES)
        if not images:
            raise FileNotFoundError(
                f'{type(self).__name__}: no image in {self.data_prefix["img"]}; '
                f'expected files ending in {IMAGE_SUFFIXES}'
            )
        wanted = dict.fromkeys(self.fields, MAP_SUFFIXES)
        if self.with_mask:
            wanted['mask'] = (*IMAGE_SUFFIXES, '.npy', '.npz')
        if self.with_parts:
            wanted['parts'] = MAP_SUFFIXES
        if self.with_camera:
            wanted['intrinsics'] = ('.txt',)
            if Path(self.data_prefix['extrinsics']).is_dir():
                wanted['extrinsics'] = ('.txt',)
        files = {
            name: _files_by_name(
                Path(self.data_prefix[name]),
                suffixes,
                ending='_seg' if name == 'parts' else '',
            )
            for name, suffixes in wanted.items()
        }
        for name, found in files.items():
            missing = sorted(images.keys() - found.keys())
            if missing:
                raise FileNotFoundError(
                    f'{type(self).__name__}: {len(missing)} of {len(images)} images '
                    f'have no {name} file in {self.data_prefix[name]}, first '
                    f'{missing[:3]}; expected the same name with one of '
                    f'{wanted[name]}'
                )
        data_list = []
        for name, img_path in sorted(images.items()):
            info = {f'{key}_path': str(found[name]) for key, found in files.items()}
            info['img_path'] = str(img_path)
            if self.depth_scale is not None:
                info['depth_scale'] = self.depth_scale
            data_list.append(info)
        return data_list


def _files_by_name(
    folder: Path, suffixes: Sequence[str], ending: str = ''
) -> dict[str, Path]:
    """Files of the kinds asked for: path below ``folder`` without suffix -> path.

    An ``ending`` of the name does not count.
    """
    if not folder.is_dir():
        raise FileNotFoundError(
            f'DenseFolderDataset: no folder {folder}; check data_root and data_prefix'
        )
    files: dict[str, Path] = {}
    for path in sorted(folder.rglob('*')):
        if path.suffix.lower() not in suffixes:
            continue
        name = str(path.relative_to(folder).with_suffix('')).removesuffix(ending)
        if name in files:
            raise ValueError(
                f'DenseFolderDataset: {files[name]} and {path} have the same name; '
                'keep one of them in this folder'
            )
        files[name] = path
    return files
