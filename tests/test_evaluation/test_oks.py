import numpy as np
import pytest

pytest.importorskip('pycocotools')

from sapiens2_mm.evaluation.oks import (
    STAT_NAMES,
    OksPerson,
    coco_oks_stats,
    instance_score,
    keypoint_extent,
    oks_matrix,
    oks_nms,
)

SIGMAS = np.array([0.05, 0.1, 0.05, 0.1])


def person(image=0, shift=0.0, **kwargs):
    points = np.array([[10.0, 10], [110, 10], [10, 110], [110, 110]])
    keypoints = np.concatenate([points + shift, np.full((4, 1), 2.0)], axis=1)
    return OksPerson(**{**dict(image=image, keypoints=keypoints, area=1e4), **kwargs})


def test_score_counts_confident_keypoints():
    scores = np.array([0.9, 0.5, 0.2, 0.1])
    assert instance_score(scores, 0.5) == pytest.approx(0.5 * 0.7)
    assert instance_score(scores, 0.5, threshold=0.95) == 0.0


def test_oks_by_hand():
    keypoints = np.stack(
        [person().keypoints[:, :2], person(shift=3.0).keypoints[:, :2]]
    )
    areas = np.array([1e4, 3e4])
    # d^2 = 18, mean area 2e4, variance (2 sigma)^2
    expected = np.exp(-18 / (2 * 2e4 * (2 * SIGMAS) ** 2)).mean()
    oks = oks_matrix(keypoints, areas, SIGMAS)
    np.testing.assert_allclose(oks, [[1, expected], [expected, 1]], rtol=1e-12)
    np.testing.assert_allclose(keypoint_extent(keypoints), [1e4, 1e4])


def test_nms_agrees_with_mmpose():
    mmpose_nms = pytest.importorskip('mmpose.evaluation.functional').oks_nms
    rng = np.random.default_rng(0)
    keypoints = rng.random((3, 4, 2)) * 200
    keypoints = np.concatenate([keypoints, keypoints + rng.normal(0, 5, (3, 4, 2))])
    scores, areas = rng.random(6), keypoint_extent(keypoints)
    kept = oks_nms(keypoints, scores, areas, SIGMAS, 0.7)
    db = [
        dict(keypoints=np.c_[k, np.ones(4)], score=s, area=a)
        for k, s, a in zip(keypoints, scores, areas, strict=True)
    ]
    assert kept == mmpose_nms(db, 0.7, SIGMAS).tolist()
    assert 3 <= len(kept) < 6


def test_truth_as_prediction_is_perfect():
    truth = [person(0), person(1), person(1, shift=300.0)]
    stats = coco_oks_stats(truth, truth, SIGMAS)
    assert tuple(stats) == STAT_NAMES
    assert stats['AP'] == stats['AR'] == stats['AP (L)'] == 1.0
    assert stats['AP (M)'] == -1.0  # nobody of that size


def test_ap_by_hand():
    # OKS 0.72 matches at the thresholds 0.5, 0.55, ..., 0.7: 5 of 10.
    shift = np.sqrt(-np.log(0.72) * 2 * 1e4 * 0.1**2 / 2)
    sigmas = np.full(4, 0.05)
    stats = coco_oks_stats([person()], [person(shift=shift)], sigmas)
    assert stats['AP'] == pytest.approx(0.5)
    assert stats['AP .5'] == pytest.approx(1.0) and stats['AP .75'] == 0.0


def test_part_of_the_keypoints():
    far = person()
    far.keypoints[2:, :2] += 500
    assert coco_oks_stats([person()], [far], SIGMAS)['AP .75'] == 0.0
    assert coco_oks_stats([person()], [far], SIGMAS, [0, 1])['AP'] == 1.0
    hidden = person()
    hidden.keypoints[:2, 2] = 0
    assert coco_oks_stats([hidden], [far], SIGMAS, [0, 1])['AP'] == -1.0


def test_ignored_truth_costs_nothing():
    crowd = person(shift=400.0, ignore=True, bbox=(400, 400, 120, 120))
    crowd.keypoints[:, 2] = 0
    found = person(score=0.5)
    on_crowd = person(shift=420.0, score=0.99)
    stats = coco_oks_stats([person(), crowd], [found, on_crowd], SIGMAS)
    assert stats['AP'] == 1.0
    without = coco_oks_stats([person()], [found, on_crowd], SIGMAS)
    assert without['AP'] < 0.6


def test_no_prediction_is_zero():
    stats = coco_oks_stats([person()], [], SIGMAS)
    assert stats['AP'] == stats['AR'] == 0.0


def test_nothing_is_printed(capsys):
    coco_oks_stats([person()], [person()], SIGMAS)
    assert capsys.readouterr().out == ''
