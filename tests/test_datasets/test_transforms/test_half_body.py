import numpy as np
import pytest

pytest.importorskip('mmpose')

from sapiens2_mm.datasets import Humans308Dataset, Sapiens2RandomHalfBody


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


def test_it_is_named_where_there_are_no_keypoints():
    with pytest.raises(ValueError, match=r'Sapiens2RandomHalfBody.*remove this step'):
        Sapiens2RandomHalfBody()(dict(img=np.zeros((4, 4, 3), dtype=np.uint8)))
