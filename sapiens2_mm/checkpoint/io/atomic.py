"""Files that appear complete or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path; what was written to it becomes ``path`` at the end.

    The bytes reach the disk under the temporary name, in the same folder, which is
    then renamed. After an error ``path`` is as it was; a process that is killed leaves
    ``.NAME.PID.tmp`` behind.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f'.{path.name}.{os.getpid()}.tmp')
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
    _flush(path.parent)  # makes the new name last


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write ``data`` so that ``path`` shows its old content or all of the new."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
