import pytest
from torch.nn import functional as F

from sapiens2_mm.engine.evidence.probe_tasks import TASKS
from sapiens2_mm.models.codecs.udp_heatmap import encode_udp_heatmaps


def perfect_prediction(name, probe_data):
    if name == 'seg':
        one_hot = F.one_hot(probe_data.labels.long(), 29)
        return one_hot.permute(0, 3, 1, 2).float()
    if name == 'pose':
        width, height = probe_data.images.shape[3], probe_data.images.shape[2]
        sizes = (width, height), (width // 4, height // 4)
        return encode_udp_heatmaps(
            probe_data.keypoints, probe_data.visible, *sizes, 1.5
        )[0]
    return {
        'normal': probe_data.normal,
        'pointmap': probe_data.points / 10,
        'albedo': probe_data.albedo,
    }[name]


@pytest.mark.parametrize(
    ('name', 'best'),
    [('pose', 100), ('seg', 100), ('normal', 0), ('pointmap', 0), ('albedo', 0)],
)
def test_metric_of_the_truth(probe_data, name, best):
    sums = TASKS[name].measure(perfect_prediction(name, probe_data), probe_data)
    assert len(sums) == len(probe_data)
    assert TASKS[name].metric(sums.sum(0)) == pytest.approx(best, abs=0.02)


def test_known_errors(probe_data):
    shifted = probe_data.points.clone()
    shifted[:, 2] += 0.25 * probe_data.scale[:, :, None]  # meters
    sums = TASKS['pointmap'].measure(shifted / 10, probe_data)
    assert TASKS['pointmap'].metric(sums.sum(0)) == pytest.approx(0.25, rel=1e-3)
    half = probe_data.albedo.new_tensor(0.5).expand_as(probe_data.albedo)
    sums = TASKS['albedo'].measure(half, probe_data)
    error = (probe_data.albedo - 0.5)[probe_data.mask.expand_as(probe_data.albedo)]
    expected = 100 * float(error.square().mean().sqrt())
    assert TASKS['albedo'].metric(sums.sum(0)) == pytest.approx(expected, rel=1e-4)
