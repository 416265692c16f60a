"""Files of a folder, by kind."""

import os.path as osp
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePath

from mmengine.fileio import list_dir_or_file

IMAGE_SUFFIXES = (
    *('.jpg', '.jpeg', '.png', '.bmp', '.tif', '.tiff', '.webp'),
    *('.ppm', '.pgm', '.gif'),
)


def list_images(
    folder: str, recursive: bool = True, suffixes: Sequence[str] = IMAGE_SUFFIXES
) -> list[str]:
    """Paths of the images of a folder, sorted.

    Raises:
        FileNotFoundError: if there is none.
    """
    return sorted(
        osp.join(folder, name) for name in _list_files(folder, suffixes, recursive)
    )


def files_by_name(
    folder: str,
    suffixes: Sequence[str] = IMAGE_SUFFIXES,
    backend_args: dict | None = None,
) -> dict[str, str]:
    """Files of a folder and its subfolders: name without suffix -> path.

    Args:
        folder: local, or any address that ``mmengine.fileio`` understands. With stars,
            as in ``root/*/rgb/*``, the files that fit; their names are what the stars
            stand for, so ``root/a/rgb/1.png`` is ``a/1``.
        suffixes: ends of the wanted names, in any case; the first that fits counts.
        backend_args: of ``mmengine.fileio``.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if two of them have the same name, such as ``1.npy`` and a picture
            ``1.png`` of it.
    """
    files: dict[str, str] = {}
    root, below = _split_at_star(folder)
    for name in sorted(_list_files(root, suffixes, True, backend_args)):
        match = below.fullmatch(without_suffix(name, suffixes))
        if match is None:
            continue
        path, key = osp.join(root, name), '/'.join(match.groups())
        if key in files:
            raise ValueError(f'{files[key]} and {path} have the same name')
        files[key] = path
    if not files:
        raise FileNotFoundError(f'no file fits {folder!r}; check the path')
    return files


def _split_at_star(folder: str) -> tuple[str, re.Pattern]:
    """The folder above the first star, and the names below it."""
    head, star, tail = folder.partition('*')
    if not star or osp.isdir(folder):
        return folder, re.compile('(.*)', re.DOTALL)
    root, _, first = head.rpartition('/')
    parts = f'{first}*{tail}'.split('*')
    return root, re.compile('([^/]*)'.join(map(re.escape, parts)))


def without_suffix(name: str, suffixes: Sequence[str]) -> str:
    """``name`` without the first of the suffixes that it ends in, in any case."""
    for suffix in suffixes:
        if name.lower().endswith(suffix.lower()):
            return name[: -len(suffix)]
    return name


def check_folders(
    data_prefix: Mapping[str, str], known: Collection[str], owner: str
) -> None:
    """Raise a ``ValueError`` if ``data_prefix`` names a folder nobody reads."""
    if unknown := sorted(set(data_prefix) - set(known)):
        raise ValueError(
            f'{owner}: data_prefix has unknown folders {unknown}; use {sorted(known)}'
        )


def check_complete(
    names: Collection[str], files: Mapping[str, str], kind: str, folder: str
) -> None:
    """Raise a ``FileNotFoundError`` unless ``files`` has all of the ``names``."""
    if missing := sorted(set(names) - set(files)):
        raise FileNotFoundError(
            f'{len(missing)} of {len(names)} samples have no {kind} file in {folder}, '
            f'such as {missing[:3]}; check the names and suffixes of the files'
        )


def _list_files(
    folder: str,
    suffixes: Sequence[str],
    recursive: bool,
    backend_args: dict | None = None,
) -> list[str]:
    """Paths below ``folder`` of the files with one of the suffixes.

    Hidden files and folders are no data, nor is what macOS adds to archives
    (``__MACOSX``).
    """
    if not all(isinstance(suffix, str) for suffix in suffixes):
        raise ValueError(
            f'the files of {folder!r} end in {suffixes!r}; set the suffix to a string '
            "such as '.png'"
        )
    names = []
    if '://' in folder or osp.isdir(folder):
        names = list_dir_or_file(
            folder, list_dir=False, recursive=recursive, backend_args=backend_args
        )
    ends = tuple(suffix.lower() for suffix in suffixes)
    names = [
        name
        for name in names
        if name.lower().endswith(ends)
        and not any(part.startswith(('.', '__MACOSX')) for part in PurePath(name).parts)
    ]
    if not names:
        raise FileNotFoundError(
            f'no file in {folder!r} ends in {" or ".join(ends)}; check the path'
        )
    return names
