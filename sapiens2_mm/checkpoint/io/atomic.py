"""Files that appear complete or not at all."""

import errno
import functools
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mmengine.logging import print_log

# Of network mounts and of folders on Windows. Other errors mean that bytes were lost.
_CANNOT_FLUSH = (
    errno.EINVAL,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.EBADF,
    errno.EACCES,
    errno.EPERM,
)


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path; what was written to it becomes ``path`` at the end.

    The bytes reach the disk under the temporary name, in the same folder, which is
    then renamed. After an error ``path`` is as it was; a process that is killed leaves
    ``.NAME.PID.tmp`` behind. Where a file system cannot flush, one warning says so.

    Raises:
        OSError: if the disk is full or the folder cannot be written.
    """
    path = Path(path)
    temporary = path.with_name(f'.{path.name}.{os.getpid()}.tmp')
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _flush(temporary, os.O_RDWR)
        os.replace(temporary, path)
    except BaseException as err:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(err, OSError):
            raise not_written(path, err) from err
        raise
    _flush(path.parent, os.O_RDONLY)  # makes the new name last


def not_written(path: Path, err: OSError) -> OSError:
    """The error for a file or folder that keeps its old content."""
    kept = 'what was there before is as it was; make room, or write elsewhere'
    text = f'{path} was not written: {err.strerror or err}; {kept}'
    return OSError(err.errno, text)


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write ``data`` so that ``path`` shows its old content or all of the new."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def replace_folder(temporary: Path, folder: Path) -> None:
    """Let a folder whose files are on the disk take the place and name of another.

    A process that is killed leaves ``.NAME.old.tmp`` behind.
    """
    for path in (*temporary.iterdir(), temporary):
        _flush(path, os.O_RDONLY)
    old = folder.with_name(f'.{folder.name}.old.tmp')
    if folder.exists():
        remove(old)
        os.replace(folder, old)
    os.replace(temporary, folder)
    _flush(folder.parent, os.O_RDONLY)
    remove(old)


def remove(path: Path) -> None:
    """Remove a file, or a folder with what is in it, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _flush(path: Path, flags: int) -> None:
    try:
        descriptor = os.open(path, flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as err:
        if err.errno not in _CANNOT_FLUSH:
            raise
        _warn_once(str(path if path.is_dir() else path.parent), str(err.strerror))


@functools.cache
def _warn_once(folder: str, reason: str) -> None:
    print_log(
        f'the file system of {folder} cannot flush to the disk ({reason}); files are '
        'written all the same, and may be lost if the machine itself fails',
        logger='current',
        level=logging.WARNING,
    )
