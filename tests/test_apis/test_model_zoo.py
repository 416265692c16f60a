from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from sapiens2_mm.apis import find_model, init_model, list_models
from sapiens2_mm.apis.model_zoo import config_dir
from sapiens2_mm.checkpoint import SkipInit
from sapiens2_mm.checkpoint.io.hub import HubAddress
from sapiens2_mm.checkpoint.layouts.convert import to_official
from sapiens2_mm.checkpoint.matching import match
from sapiens2_mm.registry import MODELS

SIZES = ('0.4b', '0.8b', '1b', '5b')
PUBLISHED = {
    *(
        f'sapiens2-{s}_{t}'
        for s in SIZES
        for t in ('pose', 'seg', 'normal', 'pointmap')
    ),
    *(f'sapiens2-{size}_pretrain' for size in ('0.1b', *SIZES, '1b-4k')),
    'sapiens2-1b_matting',
}
# Backbone and head, millions: the released sizes.
PARAMETERS = {
    '0.1b_pretrain': 113.993, '0.4b_pretrain': 395.450, '0.8b_pretrain': 814.284,
    '1b_pretrain': 1455.474, '5b_pretrain': 5066.903, '1b-4k_pretrain': 1606.589,
    '0.4b_pose': 395.450 + 30.23, '0.8b_pose': 814.284 + 34.42,
    '1b_pose': 1455.474 + 64.31, '5b_pose': 5066.903 + 53.30,
    '0.4b_seg': 395.450 + 11.15, '0.8b_seg': 814.284 + 13.25,
    '1b_seg': 1455.474 + 15.35, '5b_seg': 5066.903 + 22.69,
    '0.4b_normal': 395.450 + 57.91, '0.8b_normal': 814.284 + 70.29,
    '1b_normal': 1455.474 + 83.86, '5b_normal': 5066.903 + 249.46,
    '0.4b_pointmap': 395.450 + 133.22, '0.8b_pointmap': 814.284 + 153.08,
    '1b_pointmap': 1455.474 + 174.12, '5b_pointmap': 5066.903 + 281.44,
    '1b_matting': 1455.474 + 83.86,
}  # fmt: skip
HOSTS = {'pose': 'mmpose', 'seg': 'mmseg'}


def test_all_published_models_are_listed(repo_dir):
    assert set(list_models('sapiens2-*')) == PUBLISHED
    assert list_models('*_matting') == ['sapiens2-1b_matting']
    assert config_dir().resolve() == repo_dir / 'configs'


@pytest.mark.parametrize('name', sorted(PUBLISHED))
def test_config_is_that_of_the_published_file(name):
    size, task = name.removeprefix('sapiens2-').split('_')
    if task in HOSTS:
        pytest.importorskip(HOSTS[task])
    info = find_model(name)
    address = HubAddress.parse(info.weights)
    assert address.repo == f'facebook/sapiens2-{task}-{size}'
    assert address.file == address.official_file
    assert info.license == 'Sapiens2 License'
    assert Path(info.config).is_file()

    cfg = Config.fromfile(info.config)
    with SkipInit(on_meta=True):
        model = MODELS.build(cfg.model)
    count = sum(p.numel() for p in model.parameters()) / 1e6
    assert count == pytest.approx(PARAMETERS[f'{size}_{task}'], abs=0.02)
    # what the publishers' file holds, by name and shape, fills the model
    weights = to_official(model.state_dict(), name)
    assert weights.task == task
    arch = 'sapiens2_1b_4k' if size == '1b-4k' else f'sapiens2_{size}'
    assert weights.arch() == arch
    found = match(weights.state, model, name)
    assert not found.missing and not found.unexpected and not found.mismatched
    if task != 'pretrain':
        head = {'pose': 308, 'seg': 29, 'matting': 4}.get(task, 3)
        predictor = weights.state[f'decode_head.conv_{task}.weight']
        assert predictor.shape[0] == head
        assert isinstance(predictor, torch.Tensor)


def test_tasks_at_4k_have_short_names_without_weights(log):
    tasks = ('pose', 'seg', 'normal', 'albedo', 'matting', 'pointmap')
    for info in (find_model(f'sapiens2-1b-4k_{task}') for task in tasks):
        assert '4096x3072' in info.config.name and info.weights is None
    tiny = dict(embed_dims=32, num_layers=1, num_heads=2, feedforward_channels=64)
    options = {
        'model.backbone.arch': dict(_delete_=True, **tiny),
        'model.decode_head.in_channels': 32,
        'model.decode_head.upsample_channels': [8, 8, 8, 8, 8],
    }
    model = init_model('sapiens2-1b-4k_normal', cfg_options=options)
    assert model.backbone.use_tokenizer and model.backbone.img_size == (4096, 3072)
    assert any('no checkpoint was given' in text for text in log.messages)
