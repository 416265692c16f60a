import pytest
import torch

pytest.importorskip('mmseg')

from mmengine.structures import PixelData
from mmseg.structures import SegDataSample
from tiny_models import model_cfg

from sapiens2_mm.registry import MODELS


@pytest.fixture
def tta():
    def build(**options):
        model = model_cfg('seg', 3).model
        return MODELS.build(
            dict(type='sapiens2_mm.Sapiens2SegTTAModel', module=model, **options)
        )

    return build


def views(channel, **meta):
    """A plain and a mirrored view of one pixel, sure of a class each."""
    samples = []
    for flip in (False, True):
        logits = torch.zeros(3, 1, 1)
        logits[channel if flip else 1] = 5.0
        direction = 'horizontal' if flip else None
        sample = SegDataSample(
            metainfo=dict(flip=flip, flip_direction=direction, **meta)
        )
        sample.seg_logits = PixelData(data=logits)
        samples.append(sample)
    return [samples]


def test_channels_of_a_mirrored_view_are_swapped_back(tta):
    for options, meta in (
        ({}, dict(flip_pairs=[(1, 2)])),
        (dict(flip_pairs=[(1, 2)]), {}),
    ):
        model = tta(**options)
        (merged,) = model.merge_preds(views(2, **meta))
        assert merged.pred_sem_seg.data.tolist() == [[[1]]]
        assert not model._mirror_order(views(2, **meta)[0][1], 3).equal(torch.arange(3))


@pytest.mark.parametrize('pair', [(1, 7), (1, -1), (1, 1), ('left', 'right')])
def test_wrong_pairs_are_named(tta, pair):
    with pytest.raises(ValueError) as info:
        tta(flip_pairs=[pair]).merge_preds(views(2))
    assert f'flip_pairs: {pair!r} must be two different ids' in str(info.value)


def test_unknown_pairs(tta):
    with pytest.raises(ValueError, match='mirrored views need flip_pairs'):
        tta().merge_preds(views(2))
