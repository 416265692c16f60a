import pytest
from mmengine.registry import DefaultScope

from sapiens2_mm.datasets.metainfo.of_config import config_metainfo


@pytest.mark.parametrize(
    'scope, dataset',
    [
        ('mmseg', dict(type='ADE20KDataset')),
        ('mmengine', dict(type='mmseg.ADE20KDataset')),
        ('mmengine', dict(type='ADE20KDataset', _scope_='mmseg')),
        ('mmseg', dict(type='ConcatDataset', datasets=[dict(type='ADE20KDataset')])),
    ],
)
def test_name_of_a_host_in_its_scope(scope, dataset):
    pytest.importorskip('mmseg')
    with DefaultScope.overwrite_default_scope(scope):
        meta = config_metainfo(dataset)
    assert len(meta['classes']) == 150 and meta['classes'][12] == 'person'


def test_no_dataset():
    assert config_metainfo(None) == {}
