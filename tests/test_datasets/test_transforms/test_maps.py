import numpy as np

from sapiens2_mm.datasets.transforms.maps import (
    flipped_camera,
    pad,
    resize_nearest,
    scaled_camera,
    shifted_camera,
)


def test_resize_nearest_takes_the_pixel_under_the_center():
    values = np.arange(6).reshape(1, 6)
    assert resize_nearest(values, (1, 3)).tolist() == [[1, 3, 5]]
    assert resize_nearest(values, (1, 2)).tolist() == [[1, 4]]
    assert (
        resize_nearest(values, (2, 12))[0].tolist() == np.repeat(range(6), 2).tolist()
    )
    assert (resize_nearest(values, (1, 6)) == values).all()


def test_camera_functions():
    camera = np.array([[100.0, 0, 9.5], [0, 110.0, 19.5], [0, 0, 1]])
    # the center of a 20 x 40 image stays its center
    scaled = scaled_camera(camera, 2, 0.5)
    assert scaled.tolist() == [[200, 0, 19.5], [0, 55, 9.5], [0, 0, 1]]
    assert shifted_camera(camera, 2, -3)[:2, 2].tolist() == [7.5, 22.5]
    assert flipped_camera(camera, 30)[0, 2] == 30 - 1 - 9.5
    assert camera[0, 2] == 9.5


def test_pad():
    out = pad(np.array([[1, 2]]), (1, 0, 0, 2), 7)
    assert out.tolist() == [[7, 1, 2], [7, 7, 7], [7, 7, 7]]
    color = pad(np.ones((1, 1, 3), np.uint8), (0, 1, 0, 0))
    assert color.tolist() == [[[1, 1, 1], [0, 0, 0]]] and color.dtype == np.uint8
