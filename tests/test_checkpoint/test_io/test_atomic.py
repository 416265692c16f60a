import errno
import os

import pytest

from sapiens2_mm.checkpoint.io import atomic
from sapiens2_mm.checkpoint.io.atomic import replacing, write_atomically


def test_replacing_keeps_the_old_file_after_an_error(tmp_path):
    path = tmp_path / 'new' / 'a.txt'
    write_atomically(path, b'old')
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_bytes(b'half')
        raise RuntimeError
    assert path.read_bytes() == b'old'
    assert os.listdir(path.parent) == ['a.txt']
    write_atomically(path, b'new')
    assert path.read_bytes() == b'new'


@pytest.mark.parametrize('call', ['open', 'fsync'])
@pytest.mark.parametrize('number', [errno.EINVAL, errno.EACCES, errno.EBADF])
def test_one_warning_where_nothing_can_be_flushed(
    call, number, tmp_path, monkeypatch, log
):
    def fail(*args):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic.os, call, fail)
    for name in ('a', 'b'):
        write_atomically(tmp_path / name, b'content')
        assert (tmp_path / name).read_bytes() == b'content'
    (line,) = [r for r in log.records if 'cannot flush' in r.getMessage()]
    assert f'{tmp_path} cannot flush to the disk ({os.strerror(number)}' in line.message


def test_files_are_flushed_by_a_handle_that_can_write(tmp_path, monkeypatch):
    flags = {}
    open_file = os.open

    def note(path, flag, *args):
        flags[os.path.basename(path)] = flag
        return open_file(path, flag, *args)

    monkeypatch.setattr(atomic.os, 'open', note)
    write_atomically(tmp_path / 'a', b'content')
    assert list(flags.values()) == [os.O_RDWR, os.O_RDONLY]


@pytest.mark.parametrize('number', [errno.EIO, errno.ENOSPC])
def test_bytes_that_do_not_reach_the_disk_are_an_error(number, tmp_path, monkeypatch):
    path = tmp_path / 'a'
    write_atomically(path, b'old')

    def fail(*args):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic.os, 'fsync', fail)
    with pytest.raises(OSError, match=f'a was not written: {os.strerror(number)}; '):
        write_atomically(path, b'new')
    assert path.read_bytes() == b'old'
    assert os.listdir(tmp_path) == ['a']
