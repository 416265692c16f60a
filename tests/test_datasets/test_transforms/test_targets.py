import numpy as np

from sapiens2_mm.datasets import PointmapTarget, RelativeDepthTarget


def depth_results(depth, mask=None):
    depth = np.asarray(depth, np.float32)
    camera = np.array([[10.0, 0, 1], [0, 10, 1], [0, 0, 1]])
    return dict(
        gt_depth=depth,
        gt_mask=depth > 0 if mask is None else mask,
        intrinsics=camera,
        map_intrinsics=camera,
    )


def test_pointmap_of_a_flat_wall():
    results = PointmapTarget(canonical_focal=20.0)(depth_results(np.full((3, 3), 2)))
    assert results['gt_scale'] == 2 and results['gt_scale'].dtype == np.float32
    assert np.allclose(results['gt_pointmap'][0, 2], [0.2, -0.2, 2])
    assert results['gt_pointmap'].dtype == np.float32


def test_points_too_near_are_dropped():
    near = depth_results([[0.01, 1.0], [0, 2.0]])  # canonical 0.768
    assert PointmapTarget(min_canonical_depth=0.8)(near) is None
    assert PointmapTarget(min_canonical_depth=0.7)(near) is not None
    assert PointmapTarget()(near) is not None
    nothing = depth_results(np.zeros((2, 2)))
    assert PointmapTarget(min_canonical_depth=0.04)(nothing) is not None


def test_relative_depth():
    results = RelativeDepthTarget()(depth_results([[1.0, 3.0], [0, 2.0]]))
    assert results['gt_depth'].tolist() == [[0, 1], [0, 0.5]]
    assert RelativeDepthTarget()(depth_results(np.zeros((2, 2)))) is None
    assert RelativeDepthTarget()(depth_results(np.ones((2, 2)))) is None
