"""JPEGs decoded in small, where all crops allow it."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

pytest.importorskip('mmpretrain')

from sapiens2_mm.datasets import UnlabeledImageDataset
from sapiens2_mm.datasets.io import image as image_module
from sapiens2_mm.datasets.io.image import read_image
from sapiens2_mm.datasets.transforms import MultiViewCrop

VIEWS = [
    dict(num_views=2, size=(128, 96), area=(0.5, 1.0)),
    dict(num_views=4, size=(64, 48), area=(0.2, 0.7), jitter_prob=0.8, blur_prob=0.5),
]


def picture(height: int, width: int) -> np.ndarray:
    """Soft shapes, sharp edges and some grain."""
    rng = np.random.default_rng(0)
    small = rng.integers(40, 216, (height // 40, width // 40, 3), dtype=np.uint8)
    image = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    for _ in range(30):
        corner = rng.integers(0, (width, height), (2, 2)).tolist()
        color = rng.integers(0, 256, 3).tolist()
        cv2.rectangle(image, *corner, color, thickness=int(rng.integers(1, 9)))
    grain = rng.normal(0, 3, image.shape)
    return (image + grain).clip(0, 255).astype(np.uint8)


def write(path: Path, height: int, width: int, orientation: int = 1, **options) -> Path:
    image = Image.fromarray(picture(height, width))
    exif = image.getexif()
    exif[0x0112] = orientation
    image.save(path, exif=exif, quality=95, **options)
    return path


@pytest.fixture
def sizes(monkeypatch) -> list[tuple[int, int]]:
    """Of all images as they were decoded, (height, width)."""
    seen: list[tuple[int, int]] = []
    open_image = image_module.open_image

    def noted(*args):
        image = open_image(*args)
        seen.append(image.size[::-1])
        return image

    monkeypatch.setattr(image_module, 'open_image', noted)
    return seen


def both_ways(path: Path, draw: int = 3) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Views of the dataset, and of the whole image by the same random numbers."""
    crop = MultiViewCrop(VIEWS)
    dataset = UnlabeledImageDataset(str(path.parent), pipeline=[crop])
    views = dataset[0, draw]['img']
    rng = np.random.default_rng([0, draw])
    results = dict(rng=rng)
    whole = read_image(path)
    crop.plan(whole.shape[:2], results)
    return views, crop({**results, 'img': whole})['img']


def check_views(path: Path, is_reduced: bool) -> None:
    """Equal, or so close on average that a shift by a pixel is five times as far."""
    views, expected = both_ways(path)
    assert [v.shape for v in views] == [(128, 96, 3)] * 2 + [(64, 48, 3)] * 4
    pairs = [
        (v.astype(int), e.astype(int)) for v, e in zip(views, expected, strict=True)
    ]
    difference = np.mean([np.abs(view - other).mean() for view, other in pairs])
    shift = np.mean([np.abs(view[1:] - other[:-1]).mean() for view, other in pairs])
    assert difference == 0 if not is_reduced else 0 < difference < min(3, shift / 5)


@pytest.mark.parametrize(
    ('shape', 'divisor'),
    [((1601, 1203), 8), ((800, 600), 4), ((400, 300), 2), ((160, 120), 1)],
)
def test_views_are_those_of_the_whole_image(tmp_path, sizes, shape, divisor):
    check_views(write(tmp_path / 'x.jpg', *shape), divisor > 1)
    assert sizes == [tuple(-(-side // divisor) for side in shape), shape]


@pytest.mark.parametrize(
    ('shape', 'divisor'), [((800, 600), 4), ((806, 604), 2), ((803, 601), 1)]
)
@pytest.mark.parametrize('orientation', [3, 6])
def test_turned_pictures(tmp_path, sizes, shape, divisor, orientation):
    """Reduced by what divides both sides, so that no part of a pixel comes first."""
    stored = shape if orientation == 3 else shape[::-1]
    check_views(write(tmp_path / 'x.jpg', *stored, orientation), divisor > 1)
    assert sizes[0] == tuple(side // divisor for side in shape)


@pytest.mark.parametrize('options', [dict(progressive=True), dict(subsampling=0)])
def test_other_kinds_of_jpeg(tmp_path, sizes, options):
    check_views(write(tmp_path / 'x.jpg', 800, 600, **options), True)
    assert sizes[0] == (200, 150)


def test_no_jpeg(tmp_path, sizes):
    check_views(write(tmp_path / 'x.png', 800, 600), False)
    assert sizes[0] == (800, 600)


def test_the_limit_on_the_short_side_is_of_the_whole_image(tmp_path, sizes):
    write(tmp_path / 'x.jpg', 800, 600)
    crop = MultiViewCrop(VIEWS)
    for limit, skips in ((600, False), (601, True)):
        dataset = UnlabeledImageDataset(
            str(tmp_path), pipeline=[crop], min_short_side=limit, max_skips=2
        )
        if skips:
            with pytest.raises(RuntimeError, match='shorter side 600 is below 601'):
                dataset[0, 0]
        else:
            assert dataset[0, 0]['skipped'] == []
    assert len(sizes) == 1  # too small: not even decoded


def test_a_cut_file_is_still_an_error(tmp_path):
    good = write(tmp_path / 'a.jpg', 800, 600)
    (tmp_path / 'b.jpg').write_bytes(good.read_bytes()[:9000])
    dataset = UnlabeledImageDataset(str(tmp_path), pipeline=[MultiViewCrop(VIEWS)])
    assert 'image file is truncated' in dataset[1, 0]['skipped'][0][1]


def test_a_crop_with_too_few_pixels_needs_the_whole_image():
    crop = MultiViewCrop([dict(num_views=1, size=(128, 96), area=(1.0, 1.0),
                               aspect_jitter=1.0)])  # fmt: skip
    divisors = [
        crop.plan((height, height * 3 // 4), dict(rng=np.random.default_rng(0)))
        for height in (255, 256, 511, 512, 1023, 1024)
    ]
    assert divisors == [1, 2, 2, 4, 4, 8]
