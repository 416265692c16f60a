"""Our backbone is found by name whatever else is imported and active."""

import pytest
from mmengine.registry import MODELS as ROOT_MODELS
from mmengine.registry import DefaultScope, init_default_scope

from sapiens2_mm.models import Sapiens2
from sapiens2_mm.registry import MODELS

TINY = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)
HOSTS = ('mmpretrain', 'mmpose', 'mmseg')


def registries():
    """The model registries of all hosts, with their models imported."""
    pytest.importorskip('mmpretrain')
    pytest.importorskip('mmpose')
    pytest.importorskip('mmseg')
    import mmpose.models
    import mmpretrain.models
    import mmseg.models
    from mmpose.registry import MODELS as POSE
    from mmpretrain.registry import MODELS as PRETRAIN
    from mmseg.registry import MODELS as SEG

    assert mmpose.models and mmpretrain.models and mmseg.models
    return {
        'mmpretrain': PRETRAIN,
        'mmpose': POSE,
        'mmseg': SEG,
        'mmengine': ROOT_MODELS,
    }


@pytest.fixture(params=[*HOSTS, 'mmengine', 'sapiens2_mm'])
def scope(request):
    with DefaultScope.overwrite_default_scope(request.param):
        yield request.param


def test_prefixed_name_is_ours_from_every_registry_and_scope(scope):
    for registry in (*registries().values(), MODELS):
        model = registry.build(
            dict(type='sapiens2_mm.Sapiens2', arch=TINY, img_size=(64, 48))
        )
        assert type(model) is Sapiens2


def test_host_models_build_our_backbone(scope):
    hosts = registries()
    backbone = dict(
        type='sapiens2_mm.Sapiens2', arch=TINY, img_size=(64, 48), out_type='featmap'
    )
    head = dict(type='mmpose.HeatmapHead', in_channels=32, out_channels=17)
    head['decoder'] = dict(
        type='UDPHeatmap', input_size=(48, 64), heatmap_size=(12, 16)
    )
    head['loss'] = dict(type='mmpose.KeypointMSELoss')
    pose = hosts['mmpose'].build(
        dict(
            type='mmpose.TopdownPoseEstimator',
            _scope_='mmpose',
            backbone=backbone,
            head=head,
        )
    )
    assert type(pose.backbone) is Sapiens2


def test_wrong_arch_lists_ours_in_every_scope(scope):
    for registry in (*registries().values(), MODELS):
        with pytest.raises(ValueError, match=r'unknown arch .*sapiens2_0\.1b'):
            registry.build(dict(type='sapiens2_mm.Sapiens2', arch='base'))
        with pytest.raises(ValueError, match=r"missing .*unknown \['depth'\]"):
            registry.build(dict(type='sapiens2_mm.Sapiens2', arch=dict(depth=1)))


def test_bare_name_in_our_own_scope():
    init_default_scope('sapiens2_mm')
    cfg = dict(type='Sapiens2', arch=TINY, img_size=(64, 48))
    with DefaultScope.overwrite_default_scope('sapiens2_mm'):
        assert type(MODELS.build(cfg)) is Sapiens2
