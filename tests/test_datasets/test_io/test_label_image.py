import numpy as np
import pytest
from PIL import Image

from sapiens2_mm.datasets.io.label_image import read_label_image, write_label_image


@pytest.mark.parametrize('largest, dtype', [(3, np.uint8), (300, np.uint16)])
def test_written_labels_read_back(largest, dtype, tmp_path):
    labels = np.array([[0, 1, largest]])
    palette = [(0, 0, 0), (250, 0, 1), (9, 8, 7), (1, 1, 1)]
    write_label_image(tmp_path / 'new' / 'a.png', labels, palette)
    values = read_label_image(tmp_path / 'new' / 'a.png')
    assert values.dtype == dtype and values.tolist() == labels.tolist()


def test_palette_shows_the_colors(tmp_path):
    palette = [(0, 0, 0), (250, 0, 1)]
    write_label_image(tmp_path / 'a.png', np.array([[0, 1]]), palette)
    rgb = np.asarray(Image.open(tmp_path / 'a.png').convert('RGB'))
    assert rgb.tolist() == [[[0, 0, 0], [250, 0, 1]]]
    Image.fromarray(rgb).save(tmp_path / 'b.png')
    assert read_label_image(tmp_path / 'b.png', palette).tolist() == [[0, 1]]
    with pytest.raises(ValueError, match=r'b\.png: 1 pixels have colors .*250, 0, 1'):
        read_label_image(tmp_path / 'b.png', palette[:1])


def test_what_holds_no_labels(tmp_path):
    (tmp_path / 'text.png').write_text('no image')
    with pytest.raises(ValueError, match=r'cannot read image .*text\.png'):
        read_label_image(tmp_path / 'text.png')
    Image.new('RGB', (2, 1)).save(tmp_path / 'rgb.png')
    with pytest.raises(ValueError, match=r'rgb\.png: it holds colors \(mode RGB\)'):
        read_label_image(tmp_path / 'rgb.png')
    Image.fromarray(np.full((2, 2), 70000, np.int32)).save(tmp_path / 'deep.tiff')
    with pytest.raises(ValueError, match=r'deep\.tiff: it has values beyond 16 bits'):
        read_label_image(tmp_path / 'deep.tiff')


def test_labels_follow_the_rotation_tag_as_their_picture_does(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    labels = np.arange(6, dtype=np.uint8).reshape(2, 3)
    Image.fromarray(labels).save(tmp_path / 'a.png', exif=exif)
    assert (read_label_image(tmp_path / 'a.png') == np.rot90(labels, -1)).all()
