import torch


def test_annotations_fit_together(probe_data):
    assert torch.equal(probe_data.mask[:, 0], probe_data.labels > 0)
    length = probe_data.normal.norm(dim=1, keepdim=True)[probe_data.mask]
    torch.testing.assert_close(length, torch.ones_like(length), rtol=0, atol=2e-3)
    # pixel columns follow from the points: u = f X / Z + cx, canonical f = 768
    z, x = probe_data.points[:, 2], probe_data.points[:, 0]
    column = torch.arange(z.shape[2]).expand_as(z)
    offset = column - (z.shape[2] - 1) / 2
    focal = 768 / probe_data.scale[:, :, None]
    torch.testing.assert_close(x, z * offset / focal, rtol=1e-3, atol=1e-3)
    points = probe_data.keypoints[probe_data.visible > 0]
    assert (points >= 0).all() and (points[:, 0] <= z.shape[2] - 1).all()


def test_maps_of_another_size(probe_data):
    small = probe_data.at_size((48, 36))
    assert small.labels.shape[1:] == (48, 36) and small.labels.dtype == torch.uint8
    assert torch.equal(small.mask[:, 0], small.labels > 0)
    assert torch.equal(small.albedo[..., 0, 0], probe_data.albedo[..., 4, 4])
    assert torch.equal(small.keypoints, probe_data.keypoints)
