import numpy as np
import pytest
from PIL import Image

from sapiens2_mm.datasets.io.image import (
    read_header,
    read_image,
    to_bgr_uint8,
)


@pytest.fixture
def rgb():
    """A picture of 64 colors, so that a palette holds it exactly."""
    rng = np.random.default_rng(0)
    colors = rng.integers(0, 256, (64, 3), dtype=np.uint8)
    return colors[rng.integers(0, 64, (20, 30))]


@pytest.mark.parametrize('kind', ['RGB', 'RGBA', 'P', 'P with transparency'])
def test_color_pictures_read_alike(rgb, kind, tmp_path):
    image = Image.fromarray(rgb)
    path = tmp_path / 'a.png'
    if kind == 'RGBA':
        image.putalpha(Image.fromarray(rgb[..., 0]))
    if kind.startswith('P'):
        image = image.quantize(64, dither=Image.Dither.NONE)
        assert (np.asarray(image.convert('RGB')) == rgb).all()
    extra = {'transparency': 0} if 'transparency' in kind else {}
    image.save(path, **extra)
    assert (read_image(path) == rgb[..., ::-1]).all()


@pytest.mark.parametrize('mode', ['L', 'LA', '1'])
def test_gray_pictures_become_three_equal_channels(rgb, mode, tmp_path):
    image = Image.fromarray(rgb[..., 1]).convert(mode)
    image.save(tmp_path / 'a.png')
    expected = np.asarray(image.convert('L'))
    assert (read_image(tmp_path / 'a.png') == expected[..., None]).all()


def test_16_bit_is_scaled(tmp_path):
    values = np.linspace(0, 65535, 600).astype(np.uint16).reshape(20, 30)
    Image.fromarray(values).save(tmp_path / 'a.png')
    image = read_image(tmp_path / 'a.png')
    assert (image == np.rint(values / 257)[..., None]).all()
    assert image.max() == 255 and image.min() == 0


def test_cmyk_jpeg(tmp_path):
    color = Image.new('RGB', (16, 16), (200, 60, 30))
    color.convert('CMYK').save(tmp_path / 'a.jpg', quality=95)
    error = read_image(tmp_path / 'a.jpg').astype(int) - (30, 60, 200)
    assert np.abs(error).max() <= 4


@pytest.mark.parametrize('suffix', ['jpg', 'png', 'tif', 'webp'])
def test_exif_orientation_is_applied(rgb, suffix, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by 90 degrees
    path = tmp_path / f'a.{suffix}'
    Image.fromarray(rgb).save(path, exif=exif)
    assert read_header(path) == (30, 20, 'RGB')
    image = read_image(path)
    assert image.shape == (30, 20, 3)
    if suffix in ('png', 'tif'):
        assert (image == np.rot90(rgb, -1)[..., ::-1]).all()


@pytest.mark.parametrize('name', ['тест 测试 é/人 1.png', 'a b.png'])
def test_any_path(rgb, name, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    Image.fromarray(rgb).save(path)
    assert (read_image(path) == rgb[..., ::-1]).all()


@pytest.mark.parametrize('suffix', ['.png', '.jpg'])
def test_cut_off_file(suffix, tmp_path):
    path = tmp_path / f'cut{suffix}'
    noise = np.random.default_rng(0).integers(0, 256, (90, 90, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match=f'cannot read image .*cut{suffix}'):
        read_image(path)


def test_no_image(tmp_path):
    (tmp_path / 'text.jpg').write_text('hello')
    with pytest.raises(ValueError, match=r'cannot read image .*text\.jpg'):
        read_image(tmp_path / 'text.jpg')
    with pytest.raises(ValueError, match=r'cannot read image .*text\.jpg'):
        read_header(tmp_path / 'text.jpg')
    for read in (read_image, read_header):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / 'absent.jpg')


def test_unsupported_mode(tmp_path):
    Image.fromarray(np.zeros((4, 4), np.float32)).save(tmp_path / 'a.tiff')
    with pytest.raises(ValueError, match=r'a\.tiff: unsupported mode F'):
        read_image(tmp_path / 'a.tiff')
    Image.fromarray(np.full((4, 4), 70000, np.int32)).save(tmp_path / 'b.tiff')
    with pytest.raises(ValueError, match=r'b\.tiff: it has values beyond 16'):
        read_image(tmp_path / 'b.tiff')


def test_arrays(rgb):
    bgr = rgb[..., ::-1]
    assert (to_bgr_uint8(bgr) == bgr).all()
    assert (to_bgr_uint8(np.dstack([bgr, bgr[..., :1]])) == bgr).all()
    gray = bgr[..., 0]
    for array in (gray, gray[..., None]):
        assert (to_bgr_uint8(array) == gray[..., None]).all()
    assert (to_bgr_uint8(gray.astype(np.uint16) * 257) == gray[..., None]).all()


@pytest.mark.parametrize(
    'array, message',
    [
        (np.zeros((4, 4, 2), np.uint8), r'got \(4, 4, 2\)'),
        (np.zeros(4, np.uint8), r'got \(4,\)'),
        (np.zeros((0, 4, 3), np.uint8), r'got \(0, 4, 3\)'),
        (np.zeros((4, 4, 3), np.float32), 'got float32'),
    ],
)
def test_wrong_arrays(array, message):
    with pytest.raises(ValueError, match=message):
        to_bgr_uint8(array)


def test_far_too_many_pixels(rgb, tmp_path, monkeypatch):
    Image.fromarray(rgb).save(tmp_path / 'a.png')
    monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', 100)
    with pytest.raises(ValueError, match=r'cannot read image .*a\.png: .*exceeds'):
        read_image(tmp_path / 'a.png')
