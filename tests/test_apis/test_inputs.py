import os

import numpy as np
import pytest
import torch
from PIL import Image

from sapiens2_mm.apis.inputs import is_one_picture, iter_pictures, read_picture

RGB = np.random.default_rng(0).integers(0, 256, (4, 3, 3), np.uint8)


@pytest.fixture
def folder(tmp_path):
    for name in ('b.PNG', 'a.b.png', 'sub/c.png'):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(RGB).save(tmp_path / name)
    (tmp_path / 'notes.txt').write_text('text')
    (tmp_path / 'album.png').mkdir()
    os.symlink(tmp_path / 'gone.png', tmp_path / 'link.png')
    return tmp_path


def listed(inputs):
    return [os.path.basename(path) for path in iter_pictures(inputs)]


def test_folders_patterns_and_lists(folder):
    expected = ['a.b.png', 'b.PNG', 'link.png']  # that fails when it is read
    assert listed(folder) == listed(str(folder)) == expected
    assert listed(f'{folder}/*.png') == ['a.b.png', 'link.png']
    assert listed(f'{folder}/**/c.*') == ['c.png']
    both = [folder / 'b.PNG', folder, f'{folder}/sub/?.png']
    assert listed(both) == ['b.PNG', *expected, 'c.png']
    assert listed(path for path in both) == listed(both)
    assert listed(folder / 'nothing.png') == ['nothing.png']
    (folder / 'x[1].png').write_bytes((folder / 'a.b.png').read_bytes())
    assert listed(f'{folder}/x[1].png') == ['x[1].png']
    for nothing in (f'{folder}/*.tif', folder / 'album.png'):
        with pytest.raises(FileNotFoundError, match='no file'):
            listed(nothing)


def test_one_or_several(folder):
    for one in (folder / 'b.PNG', 'gone.png', RGB, Image.fromarray(RGB), 7):
        assert is_one_picture(one)
    for several in (folder, f'{folder}/*.png', [RGB], (RGB,), iter([RGB])):
        assert not is_one_picture(several)


def test_channels(folder):
    """Whatever the picture comes as, it becomes (H, W, 3) BGR."""
    expected = RGB[..., ::-1]
    path = folder / 'b.PNG'
    alpha = np.dstack((RGB, RGB[..., :1]))
    for same in (path, str(path), Image.open(path), Image.fromarray(alpha)):
        assert np.array_equal(read_picture(same).image, expected)
    assert np.array_equal(read_picture(expected).image, expected)
    for same in (RGB, alpha, RGB.astype(np.uint16) * 257):
        assert np.array_equal(read_picture(same, 'rgb').image, expected)
    gray = RGB[..., 0]
    for same in (gray, gray[..., None], Image.fromarray(gray)):
        image = read_picture(same, 'rgb').image
        assert np.array_equal(image, np.dstack([gray] * 3))
    assert read_picture(Image.open(path)).path == read_picture(path).path == str(path)
    assert read_picture(RGB).path is None


def test_what_is_no_picture():
    for wrong in (torch.zeros(3, 4, 4), None, 7, b'data', {RGB.tobytes()}):
        name = type(wrong).__name__
        with pytest.raises(TypeError, match=rf'\(H, W, 3\) uint8, got {name}; of a te'):
            read_picture(wrong)
    with pytest.raises(TypeError, match='got Tensor'):
        [read_picture(item) for item in iter_pictures(torch.zeros(2, 3, 4, 4))]


def test_rotation_tag_holds_for_pil_images_too(folder):
    image = Image.fromarray(RGB)
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(folder / 'turned.png', exif=exif)
    expected = np.rot90(RGB, -1)[..., ::-1]
    for source in (folder / 'turned.png', Image.open(folder / 'turned.png')):
        assert np.array_equal(read_picture(source).image, expected)


def test_first_frame_of_an_animation_and_it_is_said(folder):
    first, second = Image.fromarray(RGB), Image.fromarray(255 - RGB)
    path = folder / 'moving.png'
    first.save(path, save_all=True, append_images=[second])
    with pytest.warns(UserWarning, match=r'moving\.png has 2 frames; the first one'):
        assert np.array_equal(read_picture(path).image, RGB[..., ::-1])
    first.save(folder / 'm.gif', save_all=True, append_images=[second])
    assert 'm.gif' in listed(folder)
