"""The work folder of a run: which run it belongs to, and what was saved in it."""

import logging
import os
import re
import socket
import zipfile
from pathlib import Path
from typing import IO

from mmengine.logging import print_log
from mmengine.runner import find_latest_checkpoint

from sapiens2_mm.checkpoint import CheckpointError, read_checkpoint
from sapiens2_mm.checkpoint.io.pieces import has_pieces, read_state
from sapiens2_mm.checkpoint.io.reader import explained

_locks: dict[Path, IO] = {}  # of this process, by file


def claim(folder: str | Path) -> None:
    """Keep other runs out of a folder until ``release`` or the end of this process.

    The system frees the lock of a process that is killed; loader processes, which may
    outlive it, do not hold it.

    Raises:
        RuntimeError: if another process has the folder.
    """
    path = Path(folder).resolve() / '.run.lock'
    if path in _locks or os.name != 'posix':
        return
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True)
    file = open(path, 'a+')  # noqa: SIM115  closed by release
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        file.seek(0)
        owner = file.read()
        file.close()
        raise RuntimeError(
            f'{folder} is in use by another run ({owner}), and two would overwrite '
            'the checkpoints of each other; wait for it, or name another folder by '
            '--work-dir'
        ) from None
    except OSError as err:  # some network mounts
        text = f'{folder} cannot be locked ({err.strerror}); start no second run in it'
        print_log(text, logger='current', level=logging.WARNING)
    else:
        file.truncate(0)
        file.write(f'process {os.getpid()} on {socket.gethostname()}')
        file.flush()
    _locks[path] = file


def release(folder: str | Path) -> None:
    """Let other runs use the folder again."""
    file = _locks.pop(Path(folder).resolve() / '.run.lock', None)
    if file is not None:
        file.close()


def latest_checkpoint(work_dir: str | Path) -> str | None:
    """The file that ``last_checkpoint`` in the work folder of a run names.

    A file of that name in the folder itself counts first: mmengine writes where the
    folder was then, and it may have been moved or copied.
    """
    path = find_latest_checkpoint(work_dir)
    if path is None or '://' in path:
        return path
    here = Path(work_dir, Path(path).name)
    return str(here if here.exists() else Path(work_dir, path))


def latest_intact_checkpoint(work_dir: str | Path) -> str | None:
    """The latest checkpoint that can be read to its end; a warning names the others.

    Raises:
        CheckpointError: if there are checkpoints and none can be read.
    """
    latest = latest_checkpoint(work_dir)
    if latest is None or '://' in latest:
        return latest
    for path in (Path(latest), *_before(Path(latest))):
        try:
            _check_intact(path)
        except (CheckpointError, FileNotFoundError) as err:
            text = f'cannot resume from {path}, so from the one before: {err}'
            print_log(text, logger='current', level=logging.WARNING)
        else:
            return str(path)
    raise CheckpointError(
        f'none of the checkpoints in {Path(latest).parent} can be read; start the run '
        'anew without --resume, in another folder'
    )


def _before(latest: Path) -> list[Path]:
    """Checkpoints of the same kind that are older, the last one first."""
    name = re.fullmatch(r'(\D+)(\d+)\.pth', latest.name)
    if name is None:
        return []
    found = {
        int(path.stem.removeprefix(name[1])): path
        for path in latest.parent.glob(f'{name[1]}*.pth')
        if re.fullmatch(r'\d+', path.stem.removeprefix(name[1]))
    }
    return [found[step] for step in sorted(found, reverse=True) if step < int(name[2])]


def _check_intact(path: Path) -> None:
    if has_pieces(path):
        with explained(path):
            read_state(path)
    if path.is_dir():  # that, or one written by deepspeed
        return
    read_checkpoint(path)  # maps most of the file, so that damage inside is not seen
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        if damaged:
            raise CheckpointError(f'{path} is damaged in {damaged}')
