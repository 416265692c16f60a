import numpy as np
import pytest
from PIL import Image

from sapiens2_mm.datasets.io.array_file import read_array
from sapiens2_mm.datasets.io.image import open_image


@pytest.mark.parametrize('tag', range(1, 9))
@pytest.mark.parametrize(
    'suffix, channels', [('png', 1), ('png', 3), ('png', 4), ('tif', 1), ('tif', 3)]
)
def test_maps_follow_the_rotation_tag(tag, suffix, channels, tmp_path):
    values = np.arange(6 * channels, dtype=np.uint8).reshape(2, 3, channels)
    exif = Image.Exif()
    exif[0x0112] = tag
    path = tmp_path / f'a.{suffix}'
    Image.fromarray(values.squeeze()).save(path, exif=exif)
    upright = np.asarray(open_image(path.read_bytes(), str(path)))
    assert (tag == 1) == np.array_equal(upright, values.squeeze())
    assert np.array_equal(read_array(str(path), 'alpha'), upright)


@pytest.mark.parametrize(
    'content', [b'', b'x', b'PK\x03\x04', b'\x93NUMPY\x01\x00v\x00']
)
@pytest.mark.parametrize('suffix', ['png', 'npy', 'npz'])
def test_what_is_no_array(content, suffix, tmp_path):
    path = tmp_path / f'a.{suffix}'
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf'cannot read depth .*a\.{suffix}'):
        read_array(str(path), 'depth')
