"""Members of a tar file from a path, a command or an address."""

import io
import lzma
import selectors
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from subprocess import Popen, TimeoutExpired
from time import monotonic, sleep
from typing import BinaryIO

from webdataset.gopen import Pipe, gopen

from sapiens2_mm.checkpoint.io import transfer_speed

_WAIT = 1.0  # seconds before the second try, doubled before each further one
_ERRORS = (OSError, ValueError, EOFError, tarfile.TarError, zlib.error, lzma.LZMAError)


def read_members(
    url: str, wanted: Callable[[str], bool], num_retries: int = 2
) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files of a tar file, in their order.

    A file that cannot be opened, breaks off, is damaged, or comes from a command that
    fails, stalls or drips is read again, and goes on after the last member that was
    given.

    Args:
        url: as for ``webdataset.gopen``: a path, ``pipe:COMMAND``, ``http://...``.
        wanted: says by its name whether the content of a member is; else it is b''.
        num_retries: further tries without a new member.

    Raises:
        OSError: if the last try failed too; names its reason.
    """
    num_given = num_failures = 0
    while True:
        try:
            with closing(_read_once(url, wanted)) as members:
                for number, member in enumerate(members, 1):
                    if number > num_given:
                        num_given, num_failures = number, 0
                        yield member
            return
        except _ERRORS as err:
            num_failures += 1
            if num_failures > num_retries:
                reason = f'{type(err).__name__}: {err}'
                raise OSError(f'{reason}; tried {num_failures} times') from err
        sleep(_WAIT * 2 ** (num_failures - 1))


def _read_once(url: str, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    with (
        _open(url) as stream,
        tarfile.open(fileobj=stream, mode='r|*', tarinfo=_Header) as tar,
    ):
        for member in tar:
            if member.isreg():
                is_wanted = wanted(member.name)
                yield member.name, tar.extractfile(member).read() if is_wanted else b''
            tar.members = []  # else it keeps them all


@contextmanager
def _open(url: str) -> Iterator[BinaryIO]:
    """The bytes behind a url; a command that fails is an error whatever it wrote."""
    opened = gopen(url)
    if not isinstance(opened, Pipe):
        with opened:
            yield opened
        return
    process, error = opened.proc, None
    # The pipe's own read() drops what a failed command wrote last.
    stream = _Output(process)
    try:
        try:
            yield stream
        except TimeoutError:
            raise
        except _ERRORS as err:
            error = err
        while stream.read(1 << 20):  # or the command would fail to write it
            pass
        status = process.wait(transfer_speed.TIMEOUT)
    except TimeoutExpired as err:
        process.kill()
        raise OSError(f'{_name(process)} does not end') from err
    except BaseException:  # the rest is not wanted, or does not come
        process.kill()
        raise
    if status:
        raise OSError(f'exit status {status} of {_name(process)}') from error
    if error is not None:
        raise error


def _name(process: Popen) -> str:
    """The command as the user wrote it; for an address, webdataset's."""
    return 'curl' if isinstance(process.args, list) else process.args


class _Output(io.RawIOBase):
    """What a command writes, as it comes; ends the wait if it stalls or drips."""

    def __init__(self, process: Popen) -> None:
        self.process = process
        self.check = transfer_speed.SpeedCheck()
        self.selector = selectors.DefaultSelector()
        self.selector.register(process.stdout, selectors.EVENT_READ)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        start = monotonic()
        if not self.selector.select(transfer_speed.TIMEOUT):
            seconds = f'{transfer_speed.TIMEOUT:g} s'
            raise TimeoutError(f'{_name(self.process)} wrote nothing for {seconds}')
        num_bytes = self.process.stdout.raw.readinto(buffer)
        self.check.count(monotonic() - start, num_bytes)
        return num_bytes

    def close(self) -> None:
        self.selector.close()
        super().close()


class _Header(tarfile.TarInfo):
    """Tells a damaged or missing header from the end, which ``tarfile`` does not."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> tarfile.TarInfo:
        try:
            header = super().fromtarfile(tar)
        except tarfile.EOFHeaderError:
            raise
        except tarfile.HeaderError as err:
            raise tarfile.ReadError(f'{err} at byte {tar.offset}') from err
        if header.issparse():  # may declare any size
            raise tarfile.ReadError(f'{header.name} is sparse; pack without --sparse')
        return header
