import pytest

from sapiens2_mm.datasets.io.folder import (
    check_complete,
    files_by_name,
    list_images,
    without_suffix,
)


@pytest.fixture
def folder(tmp_path):
    litter = ('._a.png', '.ipynb_checkpoints/a-checkpoint.png', 'Thumbs.db', '.x.png')
    names = ('b.JPG', 'a.png', 'sub/c.tif', 'sub/c.npy', 'notes.txt')
    for name in (*names, *litter, '__MACOSX/sub/._c.tif', 'sub/.trash/deep/c.tif'):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(b'')
    return tmp_path


def names_of(paths, folder):
    return [path.removeprefix(f'{folder}/') for path in paths]


def test_images_are_sorted_and_hidden_files_left_out(folder):
    assert names_of(list_images(str(folder)), folder) == ['a.png', 'b.JPG', 'sub/c.tif']
    flat = list_images(str(folder), recursive=False)
    assert names_of(flat, folder) == ['a.png', 'b.JPG']


def test_names_without_suffix(folder):
    files = files_by_name(str(folder))
    assert list(files) == ['a', 'b', 'sub/c']
    assert files['sub/c'] == str(folder / 'sub' / 'c.tif')
    assert list(files_by_name(str(folder), ('/c.npy',))) == ['sub']
    assert without_suffix('x_SEG.npy', ('_seg.npy', '.npy')) == 'x'
    assert without_suffix('x.npy', ('.png',)) == 'x.npy'


def test_errors(folder):
    (folder / 'a.jpg').write_bytes(b'')
    with pytest.raises(ValueError, match=r'a\.jpg and .*a\.png have the same name'):
        files_by_name(str(folder))
    with pytest.raises(
        FileNotFoundError, match=r"no file in '.*none' ends in \.jpg or"
    ):
        list_images(str(folder / 'none'))
    with pytest.raises(ValueError, match=r'end in \(None,\); set .* string such as'):
        files_by_name(str(folder), (None,))
    with pytest.raises(FileNotFoundError, match=r'no file in .* ends in \.exr'):
        files_by_name(str(folder), ('.exr',))
    with pytest.raises(
        FileNotFoundError, match=r"2 of 3 samples have no map file in m, such as \['b'"
    ):
        check_complete('abc', {'a': 'm/a.npy'}, 'map', 'm')


def test_stars_stand_for_the_names(folder):
    for name in ('s1/rgb/a_0.png', 's2/rgb/a_0.png', 's1/rgb/deep/a.png', 's1/b.png'):
        path = folder / 'scans' / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(b'')
    files = files_by_name(f'{folder}/scans/*/rgb/*')
    assert list(files) == ['s1/a_0', 's2/a_0']
    assert files['s2/a_0'] == str(folder / 'scans/s2/rgb/a_0.png')
    assert list(files_by_name(f'{folder}/scans/s*/*/a_*')) == ['1/rgb/0', '2/rgb/0']
    with pytest.raises(FileNotFoundError, match=r"no file fits '.*scans/\*/depth/\*'"):
        files_by_name(f'{folder}/scans/*/depth/*')
    (folder / 'a*b').mkdir()
    (folder / 'a*b' / 'c.png').write_bytes(b'')
    assert list(files_by_name(f'{folder}/a*b')) == ['c']
