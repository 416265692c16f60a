import numpy as np
import pytest
import torch

from sapiens2_mm.structures import DenseDataSample


def test_fields_of_the_right_shape():
    sample = DenseDataSample(metainfo=dict(img_path='a.jpg'))
    sample.gt_normal = torch.zeros(3, 4, 5)
    sample.pred_depth = np.zeros((1, 4, 5))
    sample.intrinsics = torch.eye(3)
    sample.gt_scale = torch.ones(1)
    sample.anything_else = 'free'
    assert sample.cpu().gt_normal.shape == (3, 4, 5)
    assert sample.numpy().gt_normal.dtype == np.float32
    assert sample.img_path == 'a.jpg'


@pytest.mark.parametrize(
    'name, value, expected, got',
    [
        ('gt_normal', torch.zeros(4, 5, 3), r'\(3, H, W\)', r'\(4, 5, 3\)'),
        ('pred_depth', torch.zeros(4, 5), r'\(1, H, W\)', r'\(4, 5\)'),
        ('gt_mask', np.zeros((3, 4, 5)), r'\(1, H, W\)', r'\(3, 4, 5\)'),
        ('intrinsics', torch.eye(4), r'\(3, 3\)', r'\(4, 4\)'),
        ('gt_scale', torch.ones(()), r'\(1,\)', r'\(\)'),
        ('pred_albedo', [1, 2, 3], r'\(3, H, W\)', 'list'),
    ],
)
def test_wrong_shapes_are_named(name, value, expected, got):
    sample = DenseDataSample()
    with pytest.raises(ValueError, match=f'{name}: .*{expected}, got {got}'):
        setattr(sample, name, value)
    with pytest.raises(ValueError, match=name):
        DenseDataSample(**{name: value})
