import cv2
import numpy as np
import pytest

pytest.importorskip('mmpose')

from sapiens2_mm.datasets import (
    Humans308Dataset,
    Sapiens2RandomHalfBody,
    Sapiens2TopdownAffine,
)


def results(center=(30.0, 40.0), scale=(24.0, 32.0), **kwargs):
    rng = np.random.default_rng(0)
    return dict(
        img=rng.integers(0, 255, (80, 60, 3), dtype=np.uint8),
        bbox_center=np.float32([center]),
        bbox_scale=np.float32([scale]),
        **kwargs,
    )


def points(*xy):
    return dict(
        keypoints=np.float32([xy]),
        keypoints_visible=np.ones((1, len(xy)), dtype=np.float32),
    )


def test_map_of_the_box():
    # The corners of the box become the first and last pixel of the crop. (Points are
    # taken just inside: on the edge, rounding decides whether they count.)
    out = Sapiens2TopdownAffine((96, 128))(
        results(**points((18.01, 24.01), (30, 40), (41.99, 55.99), (18.01, 55.99)))
    )
    np.testing.assert_allclose(
        out['transformed_keypoints'][0],
        [[0, 0], [47.5, 63.5], [95, 127], [0, 127]],
        atol=0.05,
    )
    assert out['img'].shape == (128, 96, 3)
    assert out['input_size'] == (96, 128)
    np.testing.assert_array_equal(out['input_scale'], [24, 32])
    np.testing.assert_array_equal(
        out['keypoints'][0, 0], np.float32([18.01, 24.01])
    )  # unchanged


def test_shorter_side_grows_to_the_aspect():
    out = Sapiens2TopdownAffine((96, 128))(results(scale=(30.0, 4.0)))
    np.testing.assert_allclose(out['bbox_scale'], [[30, 40]])
    out = Sapiens2TopdownAffine((96, 128))(results(scale=(0.0, 0.0)))
    np.testing.assert_allclose(out['bbox_scale'], [[1, 4 / 3]])


def test_points_outside_the_crop_train_nothing():
    out = Sapiens2TopdownAffine((96, 128))(results(**points((30, 40), (44, 40))))
    assert out['keypoints_visible'].tolist() == [[1, 0]]
    assert out['transformed_keypoints'][0, 1].tolist() == [0, 0]


def test_rotation_turns_about_the_center():
    turned = results(bbox_rotation=np.float32([90.0]), **points((30, 40), (35, 40)))
    out = Sapiens2TopdownAffine((96, 128))(turned)
    center, moved = out['transformed_keypoints'][0]
    np.testing.assert_allclose(center, [47.5, 63.5], atol=1e-3)
    np.testing.assert_allclose(moved - center, [0, 5 * 127 / 32], atol=1e-3)


@pytest.mark.parametrize(
    'size, enlarge, flag',
    [
        ((96, 128), {}, cv2.INTER_CUBIC),
        ((12, 16), {}, cv2.INTER_LINEAR),
        ((96, 128), dict(enlarge='bilinear'), cv2.INTER_LINEAR),
    ],
)
def test_bicubic_only_if_enlarged(size, enlarge, flag):
    given = results()
    image = given['img'].copy()
    out = Sapiens2TopdownAffine(size, **enlarge)(given)['img']
    zoom = (np.array(size) - 1) / (24, 32)
    shift = (np.array(size) - 1) / 2 - zoom * (30, 40)
    warp = np.float32([[zoom[0], 0, shift[0]], [0, zoom[1], shift[1]]])
    np.testing.assert_array_equal(out, cv2.warpAffine(image, warp, size, flags=flag))


def test_without_keypoints_it_only_crops():
    out = Sapiens2TopdownAffine((96, 128))(results())
    assert 'transformed_keypoints' not in out and 'keypoints_visible' not in out


def test_several_boxes_are_an_error():
    given = results()
    given['bbox_scale'] = np.ones((2, 2))
    with pytest.raises(ValueError, match=r"got 2.*data_mode='topdown'"):
        Sapiens2TopdownAffine((96, 128))(given)


def test_box_of_one_half(data_dir):
    dataset = Humans308Dataset(
        data_root=str(data_dir / 'synthetic_humans'), ann_file='annotations/train.json'
    )
    np.random.seed(0)
    seen = set()
    for _ in range(20):
        sample = dataset.get_data_info(1)
        sample['keypoints_visible'][:] = 1
        sample['bbox_center'] = np.float32([[1, 1]])
        sample['bbox_scale'] = np.float32([[2, 2]])
        out = Sapiens2RandomHalfBody(prob=1.0)(sample)
        for half in ('upper', 'lower'):
            points = sample['keypoints'][0, sample[f'{half}_body_ids']]
            if np.allclose(out['bbox_scale'][0], 1.5 * np.ptp(points, axis=0)):
                seen.add(half)
    assert seen == {'upper', 'lower'}
