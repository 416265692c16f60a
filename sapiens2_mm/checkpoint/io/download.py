"""Download checkpoints from web addresses, again and on from where it broke off.

What has arrived of ``NAME`` is kept as ``NAME.part``, together with the mark that the
server gives to that version of the file (``NAME.part.tag``), so that a later try, or a
later process, asks for the rest and never joins parts of two files.
"""

import errno
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from logging import WARNING
from pathlib import Path, PurePosixPath
from queue import Empty, Queue
from ssl import SSLError
from threading import Thread
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urljoin, urlsplit
from urllib.request import Request, urlopen

import torch
from filelock import FileLock, Timeout
from mmengine.logging import print_log
from tqdm import tqdm

from ..errors import CheckpointError, shown
from . import transfer_speed
from .atomic import replacing
from .file_kind import other_kind
from .shard_index import INDEX_SUFFIX, MAX_INDEX_BYTES, shards_of

_MAX_BYTES = 1 << 37
_TRIES = 4  # in a row that bring less than
_PROGRESS = 1 << 20  # bytes
_WAIT = 1.0  # seconds after the first failure, doubled after each further one
_PASSING_CODES = (408, 416, 425, 429, 500, 502, 503, 504)
_PASSING_ERRORS = (URLError, ConnectionError, TimeoutError, SSLError, HTTPException)
_CHECKSUM = re.compile(r'-([0-9a-f]{8,})\.')
_RANGE = re.compile(r'bytes (\d+)-\d+/(\d+)')


def download_url(url: str) -> Path:
    """The local copy of a web address, kept in torch's hub folder.

    A name such as ``model-0a1b2c3d.pth`` is checked against that SHA-256 prefix. Other
    names, which repeat, get a folder for each place. An index file brings its shards.
    Of several processes one downloads and the others wait for it. A file that was kept
    and is no checkpoint, such as a page of HTML, is fetched again.

    Raises:
        CheckpointError: if the download or the check fails; says whether to try again.
    """
    parts = urlsplit(url)
    name = unquote(parts.path.rpartition('/')[2])
    is_plain = name.strip('.') and name.isprintable() and not set(name) & set('/\\')
    if not is_plain or len(name.encode()) > 200:
        raise CheckpointError(f'{shown(url)} names no file')
    folder = Path(torch.hub.get_dir(), 'checkpoints')
    if not _CHECKSUM.search(name):
        place = f'{urljoin(url, ".")}?{parts.query}'
        folder /= hashlib.sha256(place.encode()).hexdigest()[:16]
    path = _download_once(url, folder / name)
    if name.endswith(INDEX_SUFFIX):
        for shard in sorted(set(shards_of(path).values())):
            _download_once(urljoin(url, quote(shard)), folder / shard)
    return path


def _download_once(url: str, path: Path) -> Path:
    if _is_kept(path):
        return path
    try:
        with _alone(path):
            if not _is_kept(path):
                part = path.with_name(f'{path.name}.part')
                _download(url, part)
                _check(url, part, path.name)
                with replacing(path) as temporary:
                    os.replace(part, temporary)
    except OSError as err:
        reason = f'the download failed ({err.strerror or err})'
        raise CheckpointError(f'{url}: {reason}; mend that and try again') from err
    return path


def _is_kept(path: Path) -> bool:
    fault = path.exists() and _fault(path, path.name)
    if fault:
        text = f'{path} is in the cache and no checkpoint ({fault}); it is fetched anew'
        print_log(text, logger='current', level=WARNING)
    return path.exists() and not fault


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time; the lock goes with the process that holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_name(f'{path.name}.lock'))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print_log(f'another process is downloading {path}; waiting', logger='current')
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _check(url: str, part: Path, name: str) -> None:
    """Let nothing but a checkpoint into the cache."""
    fault, checksum = _fault(part, name), _CHECKSUM.search(name)
    if checksum and not fault:
        found = _sha256(part)
        if not found.startswith(checksum[1]):
            fault = f'its SHA-256 {found[:12]}... is not that of its name'
    if fault:
        part.unlink()
        reason = f'the server sent {fault}; nothing of it is kept'
        raise CheckpointError(f'{url}: the download failed: {reason}')


def _fault(path: Path, name: str) -> str | None:
    kind = other_kind(path, PurePosixPath(name).suffix)
    if kind:
        return f'{kind}, {path.stat().st_size} bytes'
    try:
        if name.endswith(INDEX_SUFFIX):
            shards_of(path)
    except CheckpointError as err:
        return str(err)
    return None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, 'rb') as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _download(url: str, part: Path) -> None:
    """Complete ``part``; failures that may pass are tried again.

    Raises:
        CheckpointError: if the last try failed too, or no further one can help.
        OSError: if the file cannot be written.
    """
    num_failures = counted = 0
    while True:
        try:
            return _download_rest(url, part)
        except HTTPError as err:
            err.close()
            error, reason = err, f'the server answered {err.code} {err.reason}'
            if err.code not in _PASSING_CODES:
                raise CheckpointError(f'{url}: {reason}') from err
            if err.code == 416:  # what is here is longer than what is there
                _drop(part)
        except _PASSING_ERRORS as err:
            error, reason = err, f'the download failed ({err})'
        arrived = part.stat().st_size if part.exists() else 0
        if arrived - counted >= _PROGRESS:
            num_failures, counted = 0, arrived
        num_failures += 1
        text = f'{url}: {reason}'
        if num_failures == _TRIES:
            kept = f', {arrived} bytes are kept' if arrived and _tag(part) else ''
            raise CheckpointError(f'{text} {_TRIES} times; try again{kept}') from error
        print_log(f'{text}; trying again', logger='current', level=WARNING)
        time.sleep(_WAIT * 2 ** (num_failures - 1))


def _download_rest(url: str, part: Path) -> None:
    headers = {'User-Agent': 'sapiens2_mm', 'Accept-Encoding': 'identity'}
    tag = _tag(part) if part.exists() else ''
    arrived = part.stat().st_size if tag else 0
    if arrived:
        headers |= {'Range': f'bytes={arrived}-', 'If-Range': tag}
    with _answer(Request(url, headers=headers)) as response:
        if response.status == 206:
            total = _total_of_rest(response, arrived, tag, part)
        else:  # all of it: the first try, another version, or a server without ranges
            arrived, tag, total = 0, _version(response), response.length
        _check_size(url, total or 0, part)
        if (total or 0) - arrived > shutil.disk_usage(part.parent).free:
            raise OSError(errno.ENOSPC, f'{part.parent} has no room for {total} bytes')
        with (
            open(part, 'r+b' if arrived else 'wb') as file,
            tqdm(
                total=total,
                initial=arrived,
                desc=part.stem,
                unit='B',
                unit_scale=True,
                disable=None,  # shown on a terminal only
            ) as progress,
        ):
            _tag_file(part).write_text(tag or '', 'latin-1')
            file.seek(arrived)
            for chunk in _chunks(response, total and total - arrived):
                arrived += len(chunk)
                _check_size(url, arrived, part)
                file.write(chunk)
                progress.update(len(chunk))
    if total is not None and arrived != total:
        raise ConnectionError(f'{arrived} of {total} bytes arrived')
    _tag_file(part).unlink()


def _answer(request: Request) -> HTTPResponse:
    """``urlopen`` within a time; its own limit is for each byte of the head alone."""
    answers: Queue = Queue()

    def ask() -> None:
        try:
            answers.put(urlopen(request, timeout=transfer_speed.TIMEOUT))
        except Exception as err:  # goes on in the thread that waits
            answers.put(err)

    Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=2 * transfer_speed.TIMEOUT)  # connection, head
    except Empty:
        raise TimeoutError('the answer timed out') from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _tag_file(part: Path) -> Path:
    return part.with_name(f'{part.name}.tag')


def _tag(part: Path) -> str:
    file = _tag_file(part)
    return file.read_text('latin-1') if file.exists() else ''


def _drop(part: Path) -> None:
    for path in (part, _tag_file(part)):
        path.unlink(missing_ok=True)


def _version(response: HTTPResponse) -> str | None:
    """The mark of exactly this content, None if the server gives none."""
    tag = response.headers.get('ETag', '')
    return tag if tag.startswith('"') else response.headers.get('Last-Modified')


def _total_of_rest(
    response: HTTPResponse, arrived: int, tag: str | None, part: Path
) -> int:
    """Bytes of the whole file whose rest the server sends."""
    found = _RANGE.match(response.headers.get('Content-Range', ''))
    if found and int(found[1]) == arrived and _version(response) in (None, tag):
        return int(found[2])
    _drop(part)
    raise ConnectionError('the server sent another part than the one asked for')


def _check_size(url: str, size: int, part: Path) -> None:
    limit = MAX_INDEX_BYTES if part.stem.endswith(INDEX_SUFFIX) else _MAX_BYTES
    if size > limit:
        _drop(part)
        raise CheckpointError(f'{url}: over {limit} bytes, which no checkpoint has')


def _chunks(response: HTTPResponse, length: int | None) -> Iterator[bytes]:
    """The bytes of an answer, as they come.

    Raises:
        TimeoutError: if they come too slowly.
    """
    check = transfer_speed.SpeedCheck()
    while length is None or length > 0:
        start = time.monotonic()
        chunk = response.read1(min(1 << 20, length or 1 << 20))
        check.count(time.monotonic() - start, len(chunk))
        if not chunk:
            return
        yield chunk
        length = length and length - len(chunk)
