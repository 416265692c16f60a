import torch
from dense_maps import arguments, some_maps

from sapiens2_mm.models.losses import IntrinsicsLoss, PointmapNormalLoss


def test_intrinsics_loss_is_zero_on_the_rays():
    rows, cols = torch.meshgrid(torch.arange(64.0), torch.arange(48.0), indexing='ij')
    z = torch.rand(2, 64, 48) + 1
    points = torch.stack([(cols - 24) * z / 50, (rows - 32) * z / 50, z], 1)
    _, _, mask = some_maps()
    value = IntrinsicsLoss()(*arguments(IntrinsicsLoss(), points, points, mask))
    assert value < 1e-6


def test_pointmap_normal_option_leaves_the_outline_out():
    """A wrong prediction outside the mask matters only without the option."""
    _, target, _ = some_maps()
    mask = torch.zeros(2, 1, 64, 48, dtype=torch.bool)
    mask[..., 10:40, 10:30] = True
    pred = torch.where(mask, target, target + 5)
    for neighbors, expected in ((False, False), (True, True)):
        loss = PointmapNormalLoss(neighbors_in_mask=neighbors)
        assert (loss(*arguments(loss, pred, target, mask)) < 1e-5) == expected
