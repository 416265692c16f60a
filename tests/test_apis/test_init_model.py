import pytest
import torch
import yaml
from mmengine.config import Config
from tiny_models import model_cfg, official

from sapiens2_mm.apis import find_model, init_model, list_models, model_zoo
from sapiens2_mm.checkpoint import CheckpointError

tree_leaves = torch.utils._pytree.tree_leaves
TASKS = ['pose', 'seg', 'normal', 'pointmap', 'albedo', 'matting']


def outputs(model) -> list[torch.Tensor]:
    image = torch.randn(1, 3, 128, 96, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return [out.float() for out in tree_leaves(model(image, None, 'tensor'))]


@pytest.mark.parametrize('task', TASKS)
def test_model_equals_one_that_was_built_and_loaded_plainly(task, build, save):
    plain = build(task)
    model = init_model(model_cfg(task), save(official(plain)))
    assert not model.training
    assert model.cfg.model.type == model_cfg(task).model.type
    for (key, value), other in zip(
        model.state_dict().items(), plain.state_dict().values(), strict=True
    ):
        assert torch.equal(value, other), key
    # everything that no file holds: normalization, rotary tables, class weights, ...
    buffers = dict(plain.named_buffers())
    assert dict(model.named_buffers()).keys() == buffers.keys()
    for key, value in model.named_buffers():
        assert torch.equal(value, buffers[key]) and value.dtype == buffers[key].dtype
    assert all(p.requires_grad for p in model.parameters())
    for one, other in zip(outputs(model), outputs(plain), strict=True):
        torch.testing.assert_close(one, other)


def test_building_draws_no_random_numbers(build, save):
    path = save(official(build('normal')))
    state = torch.get_rng_state()
    init_model(model_cfg('normal'), path)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize('task', TASKS)
def test_bf16_model_predicts(task, build, save):
    path = save(official(build(task)))
    model = init_model(model_cfg(task), path, dtype=torch.bfloat16)
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    full = init_model(model_cfg(task), path)
    for key, value in full.named_buffers():
        other = dict(model.named_buffers())[key]
        assert torch.equal(value, other) and value.dtype == other.dtype, key
    one, other = outputs(model)[0], outputs(full)[0]
    assert torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1] > 0.99


def test_no_checkpoint_means_random_weights():
    model = init_model(model_cfg('normal'))
    weight = model.backbone.blocks[0].attn.wq.weight
    assert 0.01 < weight.std() < 0.03
    assert not any(p.is_meta for p in model.parameters())


def test_backbone_file_needs_an_explicit_wish(build, save):
    backbone = build('normal').backbone
    path = save(backbone.state_dict())
    with pytest.raises(CheckpointError, match='missing in the checkpoint: decode_head'):
        init_model(model_cfg('normal'), path)
    model = init_model(model_cfg('normal'), path, strict=False)
    assert torch.equal(model.backbone.cls_token, backbone.cls_token)
    assert model.decode_head.conv_normal.weight.std() > 0


def test_pretrained_backbone_of_the_config_is_not_fetched(build, save):
    nowhere = dict(type='Pretrained', checkpoint='hf://nobody/nothing/none.pth')
    cfg = model_cfg('normal', init_cfg=nowhere)
    path = save(official(build('normal')))
    assert init_model(cfg, path).backbone.init_cfg is None
    assert cfg.model.backbone.init_cfg == nowhere  # the caller's config is unchanged


def test_config_as_file_with_options(build, save, tmp_path):
    path = tmp_path / '\u0442\u0435\u0441\u0442 \xe9' / '\u4eba 1.py'
    path.parent.mkdir()
    model_cfg('pose', 17).dump(path)
    weights = save(official(build('pose', 5)), '\u0442\u0435\u0441\u0442 1.safetensors')
    options = {'model.head.out_channels': 5}
    for config in (path, str(path), Config.fromfile(path)):
        model = init_model(config, weights, cfg_options=options)
        assert model.head.conv_pose.out_channels == 5


def test_dataset_meta(build, save):
    assert init_model(model_cfg('normal')).dataset_meta == {}
    cfg, pose = model_cfg('pose'), build('pose')
    data = dict(type='sapiens2_mm.Humans308Dataset')
    cfg.test_dataloader = dict(dataset=dict(type='ConcatDataset', datasets=[data]))
    meta = init_model(cfg, save(official(pose))).dataset_meta
    assert meta['num_keypoints'] == 308
    run = dict(state_dict=pose.state_dict(), meta=dict(dataset_meta={'classes': 'x'}))
    assert init_model(cfg, save(run, 'a.pth')).dataset_meta == {'classes': 'x'}


def test_wrong_arguments(tmp_path):
    with pytest.raises(TypeError, match='config must be a path or a Config, got'):
        init_model(3)
    with pytest.raises(FileNotFoundError, match=r'no\.py'):
        init_model(tmp_path / 'no.py')
    with pytest.raises(FileNotFoundError, match=r'no\.py'):
        init_model(str(tmp_path / 'no.py'))
    with pytest.raises(ValueError, match="'sapiens2-9b_pose' is neither a config file"):
        init_model('sapiens2-9b_pose')
    for name in ('sapiens2-1b-pose', 'Sapiens2_1B_pose'):
        with pytest.raises(ValueError, match=r"did you mean .*'sapiens2-1b_pose'.*\?"):
            init_model(name)
    with pytest.raises(TypeError, match=r"dtype must be a torch\.dtype.*got 'bf16'"):
        init_model(model_cfg('normal'), 'a.pth', dtype='bf16')


@pytest.fixture
def zoo(tmp_path, monkeypatch, build, save):
    """A model index with one tiny model."""
    weights = save(official(build('normal')))
    folder = tmp_path / 'configs'
    (folder / 'normal').mkdir(parents=True)
    model_cfg('normal').dump(folder / 'normal' / 'tiny.py')
    entries = [
        dict(
            Name='tiny_long',
            Alias='tiny_normal',
            Config='configs/normal/tiny.py',
            Weights=weights,
            License='Sapiens2 License',
        ),
        dict(Name='tiny_other', Config='configs/normal/tiny.py'),
    ]
    index = {'Import': ['configs/normal/metafile.yml']}
    (folder / 'model-index.yml').write_text(yaml.safe_dump(index))
    (folder / 'normal' / 'metafile.yml').write_text(yaml.safe_dump({'Models': entries}))
    monkeypatch.setattr(model_zoo, 'config_dir', lambda: folder)
    return build('normal')


def test_short_name_finds_config_and_weights(zoo):
    assert list_models() == ['tiny_normal']
    assert list_models('*_pose') == []
    for name in ('tiny_normal', 'tiny_long'):
        model = init_model(name)
        assert torch.equal(model.backbone.cls_token, zoo.backbone.cls_token)
    assert find_model('tiny_normal').license == 'Sapiens2 License'
    assert find_model('tiny_other').weights is None
    model = init_model('tiny_other')  # no published weights
    assert not torch.equal(model.backbone.cls_token, zoo.backbone.cls_token)
    with pytest.raises(ValueError, match=r"published models are \['tiny_normal'\]"):
        find_model('tiny')
