import cv2
import numpy as np

from sapiens2_mm.datasets import LoadImage


def test_file_and_array(tmp_path):
    rgb = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    path = str(tmp_path / 'a.png')
    cv2.imwrite(path, rgb[..., ::-1])
    results = LoadImage()({'img_path': path})
    assert results['img_shape'] == results['ori_shape'] == (20, 30)
    assert (results['img'] == rgb[..., ::-1]).all()
    results = LoadImage()({'img': rgb[..., 0]})
    assert results['img'].shape == (20, 30, 3) and results['img_path'] is None
