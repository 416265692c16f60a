import numpy as np
import torch

from sapiens2_mm.datasets import PackDenseInputs


def test_pack():
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (96, 72, 3), dtype=np.uint8)
    normal = rng.normal(size=(96, 72, 3)).astype(np.float32)
    depth = rng.uniform(1, 2, (96, 72)).astype(np.float32)
    camera = np.array([[90.0, 0, 33.3], [0, 95.0, 50.2], [0, 0, 1]])
    packed = PackDenseInputs()(
        dict(
            img=image,
            ori_shape=(96, 72),
            gt_normal=normal,
            gt_depth=depth,
            gt_mask=depth > 1.5,
            gt_scale=np.array([2.0], np.float32),
            intrinsics=camera,
            ori_intrinsics=camera,
        )
    )
    sample = packed['data_samples']
    assert (packed['inputs'].numpy() == image.transpose(2, 0, 1)).all()
    assert (sample.gt_normal.numpy() == normal.transpose(2, 0, 1)).all()
    assert (sample.gt_depth.numpy() == depth[None]).all()
    assert sample.gt_mask.dtype == torch.bool and sample.gt_mask.shape == (1, 96, 72)
    floats = [v for v in sample.values() if v.dtype.is_floating_point]
    assert len(floats) == 5 and all(v.dtype == torch.float32 for v in floats)
    assert np.allclose(sample.intrinsics, camera) and sample.gt_scale == 2
    assert np.allclose(sample.ori_intrinsics, camera)
    assert sample.ori_shape == (96, 72)
