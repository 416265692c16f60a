"""Another background behind a person."""

import cv2
import numpy as np
import pytest
from PIL import Image

from sapiens2_mm.datasets.transforms.background import transfer_color
from sapiens2_mm.registry import TRANSFORMS


def make(name, **kwargs):
    return TRANSFORMS.build(dict(type=f'sapiens2_mm.{name}', **kwargs))


def noise(height=40, width=30, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def sample(labels, img=None, **extra):
    labels = np.array(labels, np.uint8)
    img = noise(*labels.shape) if img is None else img
    return dict(img=img, gt_seg_map=labels, seg_fields=['gt_seg_map'], **extra)


class TestRandomBackground:
    @pytest.fixture
    def photos(self, tmp_path):
        folder = tmp_path / 'photos é' / 'sub'
        folder.mkdir(parents=True)
        rgb = np.zeros((60, 200, 3), np.uint8)
        rgb[..., 0] = 10 + np.arange(200) % 50  # RGB file: red ramp
        rgb[:, :50] = rgb[:, 150:] = (0, 255, 0)  # cut off by the center crop
        Image.fromarray(rgb).save(folder / 'p.png')
        return str(tmp_path / 'photos é')

    def test_pastes_the_center_behind_the_person(self, photos):
        labels = np.zeros((30, 30))
        labels[10:20, 10:20] = 3
        labels[0, 0] = 255
        before = sample(labels)
        image = before['img'].copy()
        paste = make(
            'RandomBackground', background_dir=photos, prob=1.0, transfer_color=False
        )
        after = paste.transform(before)['img']
        person = labels != 0
        assert np.array_equal(after[person], image[person])
        behind = after[~person]
        assert behind[:, 0].max() == 0 and behind[:, 1].max() == 0  # blue, green
        assert behind[:, 2].min() >= 10  # red is the last channel of BGR

    def test_the_person_of_a_dense_task_is_its_mask(self, photos):
        image, mask = noise(30, 30), np.zeros((30, 30), bool)
        mask[10:20, 10:20] = True
        paste = make(
            'RandomBackground', background_dir=photos, prob=1.0, transfer_color=False
        )
        after = paste.transform(dict(img=image.copy(), gt_mask=mask))['img']
        assert ((after == image).all(-1) == mask).all()

    def test_skips(self, photos, tmp_path):
        wild = sample([[0, 1]], in_the_wild=True)
        image = wild['img'].copy()
        paste = make('RandomBackground', background_dir=photos, prob=1.0)
        assert np.array_equal(paste.transform(wild)['img'], image)
        empty = sample([[0, 0]])
        image = empty['img'].copy()
        assert np.array_equal(paste.transform(empty)['img'], image)
        never = make('RandomBackground', background_dir=photos, prob=0.0)
        assert np.array_equal(never.transform(sample([[0, 1]], image))['img'], image)

    def test_without_photos_draws_a_smooth_field(self):
        np.random.seed(0)
        labels = np.zeros((120, 90))
        labels[50:60, 40:50] = 1
        paste = make('RandomBackground', prob=1.0, transfer_color=False)
        one, two = (paste.transform(sample(labels))['img'] for _ in range(2))
        behind = labels == 0
        assert not np.array_equal(one[behind], two[behind])
        assert np.abs(np.diff(one[:40].astype(int), axis=0)).max() < 25
        assert one[:40].std() > 10

    @pytest.mark.parametrize('exists', [False, True])
    def test_no_photo(self, tmp_path, exists):
        folder = tmp_path / 'none'
        if exists:
            folder.mkdir()
        paste = make('RandomBackground', background_dir=str(folder), prob=1.0)
        with pytest.raises(FileNotFoundError, match=r'no file in .*none.* ends in'):
            paste.transform(sample([[0, 1]]))


def lab_stats(image):
    lab = cv2.cvtColor(image.astype(np.float32) / 255, cv2.COLOR_BGR2LAB)
    return lab.reshape(-1, 3).mean(0), lab.reshape(-1, 3).std(0)


def test_color_transfer_moves_mean_and_spread():
    # Muted colors, so that nothing leaves the RGB cube.
    image = (noise(60, 50, seed=1) // 8 + 60).astype(np.uint8)
    reference = (noise(60, 50, seed=2) // 6 + 120).astype(np.uint8)
    reference[..., 0] -= 30
    mask = np.zeros((60, 50), bool)
    mask[:, :25] = True
    out = transfer_color(image, mask, reference)
    assert np.array_equal(out[~mask], image[~mask])
    mean, std = lab_stats(out[:, :25])
    target_mean, target_std = lab_stats(reference)
    np.testing.assert_allclose(mean, target_mean, atol=0.3)
    np.testing.assert_allclose(std, target_std, rtol=0.05)


def test_color_transfer_of_a_flat_person_is_finite():
    flat = np.full((8, 8, 3), 77, np.uint8)
    out = transfer_color(flat, np.ones((8, 8), bool), noise(8, 8))
    assert np.ptp(out.reshape(-1, 3), axis=0).max() == 0
