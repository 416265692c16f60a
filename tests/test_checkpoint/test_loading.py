"""Which checkpoints fill which models, and what is said about it."""

import pytest
import torch
from mmengine.runner.checkpoint import load_checkpoint
from tiny_models import ARCH, backbone_cfg, model_cfg, official, randomized

from sapiens2_mm.checkpoint import CheckpointError, load_backbone, read_checkpoint
from sapiens2_mm.checkpoint.loading import load_for_inference
from sapiens2_mm.checkpoint.matching import is_last_layer, match
from sapiens2_mm.checkpoint.strictness import (
    check_inference,
    check_resume,
    check_training,
)
from sapiens2_mm.registry import MODELS


def prefixed(state, prefix):
    return {prefix + key: value for key, value in state.items()}


BACKBONE_FORMS = {
    'bare.safetensors': lambda s: s,
    'bare.pth': lambda s: s,
    'backbone.pth': lambda s: prefixed(s, 'backbone.'),
    'backbone.safetensors': lambda s: prefixed(s, 'backbone.'),
    'module_backbone.pth': lambda s: prefixed(s, 'module.backbone.'),
    'module.pth': lambda s: prefixed(s, 'module.'),
    'model.safetensors': lambda s: prefixed(s, 'model.backbone.'),
    'compiled.pth': lambda s: prefixed(s, '_orig_mod.backbone._orig_mod.'),
    'teacher.pth': lambda s: prefixed(s, 'teacher.backbone.'),
    'state_dict.pth': lambda s: {'state_dict': s},
    'model.pth': lambda s: {'model': prefixed(s, 'module.')},
    'teacher_wrapper.pth': lambda s: {'teacher': prefixed(s, 'backbone.')},
    'student_and_teacher.pth': lambda s: {
        'state_dict': prefixed({k: v + 1 for k, v in s.items()}, 'backbone.')
        | prefixed(s, 'teacher.backbone.')
        | {'head.mlp.0.weight': torch.zeros(3, 3), 'iteration': torch.tensor(1)}
    },
}


@pytest.mark.parametrize('name', BACKBONE_FORMS)
def test_init_cfg_takes_every_form(name, backbone, save):
    path = save(BACKBONE_FORMS[name](backbone.state_dict()), name)
    for prefix in ({}, {'prefix': 'teacher.backbone.'}):
        init_cfg = dict(type='Pretrained', checkpoint=path, **prefix)
        model = MODELS.build(backbone_cfg(init_cfg=init_cfg))
        model.init_weights()
        for key, value in model.state_dict().items():
            assert torch.equal(value, backbone.state_dict()[key]), key


@pytest.mark.parametrize('name', BACKBONE_FORMS)
def test_every_form_matches_inside_a_model(name, backbone, save, build):
    path = save(BACKBONE_FORMS[name](backbone.state_dict()), name)
    model = build('normal', seed=1)
    found = match(read_checkpoint(path)['state_dict'], model, path)
    assert not found.mismatched
    assert {key.split('.')[0] for key in found.missing} == {'decode_head'}
    for key, value in backbone.state_dict().items():
        assert torch.equal(found.state[f'backbone.{key}'], value)


def test_blocks_that_will_be_loaded_draw_no_random_numbers(backbone, save):
    init_cfg = dict(type='Pretrained', checkpoint=save(backbone.state_dict()))
    states = []
    for layers in (2, 7):
        torch.manual_seed(0)
        arch = {**ARCH, 'num_layers': layers}
        MODELS.build(backbone_cfg(init_cfg=init_cfg, arch=arch))
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


@pytest.mark.parametrize('task', ['pose', 'seg', 'normal', 'pointmap', 'matting'])
def test_official_task_file_fills_the_model(task, build, save):
    saved, model = build(task), build(task, seed=1)
    path = save(official(saved))
    load_for_inference(model, path)
    for key, value in model.state_dict().items():
        assert torch.equal(value, saved.state_dict()[key]), key
    # the backbone of a task file, by itself
    alone = MODELS.build(backbone_cfg())
    load_backbone(alone, path)
    assert torch.equal(alone.cls_token, saved.backbone.cls_token)


def test_pose_head_of_an_official_file_needs_no_hook(build, save):
    saved, model = build('pose'), build('pose', seed=1)
    load_checkpoint(model, save(official(saved)), strict=True)
    assert torch.equal(model.head.conv_pose.weight, saved.head.conv_pose.weight)


@pytest.mark.parametrize('use_tokenizer', [False, True])
@pytest.mark.parametrize('size', [(64, 128), (192, 64), (128, 192)])
@pytest.mark.parametrize('task', ['pose', 'seg', 'normal'])
def test_input_size_does_not_matter(task, size, use_tokenizer, build, save):
    saved = build(task, use_tokenizer=use_tokenizer, img_size=(128, 64))
    path = save(official(saved))
    model = build(task, seed=1, use_tokenizer=use_tokenizer, img_size=size)
    found = match(read_checkpoint(path)['state_dict'], model, path)
    assert not found.missing and not found.unexpected and not found.mismatched


def test_backbone_file_is_refused_for_inference(backbone, build, save):
    path = save(backbone.state_dict(), 'b.pth')
    model = build('normal')
    with pytest.raises(CheckpointError) as error:
        load_for_inference(model, path)
    message = str(error.value)
    assert 'b.pth does not fit the model' in message
    assert 'missing in the checkpoint: decode_head.' in message
    assert 'decode_head.conv_normal.weight' in message or 'and' in message
    load_for_inference(model, path, strict=False)
    assert torch.equal(model.backbone.cls_token, backbone.cls_token)


def test_head_of_another_size_is_refused_with_both_shapes(build, save):
    path = save(build('pose', 17).state_dict())
    with pytest.raises(CheckpointError) as error:
        load_for_inference(build('pose', 308), path)
    message = 'head.conv_pose.weight: checkpoint (17, 8, 1, 1), model (308, 8, 1, 1)'
    assert message in str(error.value)
    assert 'head.conv_pose.bias: checkpoint (17,), model (308,)' in str(error.value)


@pytest.mark.parametrize('tasks', [('pose', 'seg'), ('normal', 'albedo')])
def test_checkpoint_of_another_task_is_refused(tasks, build, save):
    one, other = (build(task) for task in tasks)
    for saved, model in ((one, other), (other, one)):
        with pytest.raises(CheckpointError, match='missing in the checkpoint'):
            load_for_inference(model, save(saved.state_dict()))


def test_no_match_at_all_is_an_error(build, save):
    path = save({'fc.weight': torch.zeros(2), 'fc.bias': torch.zeros(2)})
    message = r'no key of .* matches the model; it has fc\.\w+, fc\.\w+, the model'
    with pytest.raises(CheckpointError, match=message):
        match(read_checkpoint(path)['state_dict'], build('normal'), path)
    with pytest.raises(CheckpointError, match=message):
        load_backbone(MODELS.build(backbone_cfg()), path)


def test_checkpoint_of_another_size_shows_the_shapes(build, save):
    wide = dict(embed_dims=64, num_layers=2, num_heads=4, feedforward_channels=128)
    state = MODELS.build(backbone_cfg(arch=wide)).state_dict()
    model = MODELS.build(backbone_cfg(out_type='raw'))
    found = match({'cls_token': state['cls_token']}, model, 'f')
    message = r'cls_token: checkpoint \(1, 1, 64\), model \(1, 1, 32\)'
    with pytest.raises(CheckpointError, match=message):
        check_inference(found, 'f')
    with pytest.raises(CheckpointError, match='of another shape'):
        load_backbone(model, save(state))


def test_pretraining_model_keeps_student_and_teacher_apart(backbone):
    class Pretraining(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = MODELS.build(backbone_cfg())
            self.teacher = torch.nn.ModuleDict(
                {'backbone': MODELS.build(backbone_cfg())}
            )

    model = Pretraining()
    saved = {key: value + 1 for key, value in model.state_dict().items()}
    saved['teacher.backbone.cls_token'] += 1
    found = match(saved, model, 'f')
    check_resume(found, 'f')
    assert all(torch.equal(found.state[key], saved[key]) for key in saved)
    # a backbone file fills the student; the teacher is the model's own business
    found = match(backbone.state_dict(), model, 'f')
    assert {key.split('.')[0] for key in found.state} == {'backbone'}
    assert 'start untrained' in check_training(found, 'f')


@pytest.mark.parametrize('way', ['inference', 'train', 'backbone'])
def test_4k_and_1k_are_not_mixed_up(way, build, save):
    with_tokenizer = build('normal', use_tokenizer=True, img_size=(128, 128))
    without = build('normal', img_size=(128, 128))
    for saved, model, message in (
        (
            with_tokenizer,
            without,
            r'is a 4K checkpoint.*tokenizer\.\w+.*tokenizer=True',
        ),
        (without, with_tokenizer, r'tokenizer=True.*is a 1K.*tokenizer\.\w+.*=False'),
    ):
        path = save(official(saved))
        state = read_checkpoint(path)['state_dict']
        with pytest.raises(CheckpointError, match=message):
            if way == 'inference':
                load_for_inference(model, path)
            elif way == 'train':
                check_training(match(state, model, path), path)
            else:
                load_backbone(model.backbone, path)


def test_1k_weights_start_a_4k_backbone_if_asked_for(build, save, log):
    saved = build('normal', img_size=(128, 128)).backbone
    path = save(saved.state_dict(), '1k.safetensors')
    init_cfg = dict(type='Pretrained', checkpoint=path, allow_missing=['*tokenizer.*'])
    tiny = dict(use_tokenizer=True, img_size=(128, 128))
    model = MODELS.build(backbone_cfg(init_cfg=init_cfg, **tiny))
    model.init_weights()
    (warning,) = [text for text in log.messages if 'start untrained' in text]
    assert 'missing in the checkpoint: tokenizer.' in warning
    own = model.state_dict()
    assert all(torch.equal(own[k], v) for k, v in saved.state_dict().items())
    assert own['tokenizer.w_cls'].std() > 0.01
    assert own['tokenizer.blocks.0.ffn.w12.weight'].std() < 0.03  # as a new backbone
    assert own['tokenizer.blocks.0.ffn.w12.bias'].abs().max() == 0
    for key in saved.state_dict():  # nothing but what was named may be missing
        if key.endswith('attn.wq.weight'):
            short = {k: v for k, v in saved.state_dict().items() if k != key}
            with pytest.raises(CheckpointError, match=key):
                load_backbone(model, save(short), allow_missing=['*tokenizer.*'])


def test_student_and_teacher_of_a_4k_run_fill_a_4k_model(build, save):
    saved = build('normal', use_tokenizer=True, img_size=(128, 128)).backbone
    path = save(BACKBONE_FORMS['student_and_teacher.pth'](saved.state_dict()), 'p.pth')
    model = build('normal', seed=1, use_tokenizer=True, img_size=(128, 128))
    load_backbone(model.backbone, path)
    for key, value in match(
        read_checkpoint(path)['state_dict'], model, path
    ).state.items():
        assert torch.equal(value, saved.state_dict()[key.removeprefix('backbone.')])
        assert torch.equal(value, model.state_dict()[key])


def test_incomplete_or_other_backbone_is_refused(backbone, build, save):
    state = backbone.state_dict()
    lacking = {k: v for k, v in state.items() if not k.startswith('blocks.1.attn')}
    path = save(lacking, 'short.pth')
    with pytest.raises(CheckpointError, match=r'missing in the .*blocks\.1\.attn\.wq'):
        load_backbone(MODELS.build(backbone_cfg()), path)
    wide = dict(embed_dims=64, num_layers=2, num_heads=2, feedforward_channels=64)
    message = r'attn\.gamma\.weight: checkpoint \(32,\), model \(64,\)'
    with pytest.raises(CheckpointError, match=message):
        load_backbone(MODELS.build(backbone_cfg(arch=wide)), save(state))
    model = build('normal')
    with pytest.raises(CheckpointError, match=r'backbone\.blocks\.1\.attn'):
        check_training(match(lacking, model, 'f'), 'f')


def test_deeper_backbone_is_refused(backbone, build, save):
    path = save(backbone.state_dict())
    arch = {**ARCH, 'num_layers': 1}
    message = r'of a deeper backbone: .*blocks\.1\.\w+.*; set the arch'
    with pytest.raises(CheckpointError, match=message):
        load_backbone(MODELS.build(backbone_cfg(arch=arch)), path)
    path = save(build('normal').state_dict(), 'n.safetensors')
    with pytest.raises(CheckpointError, match=message):
        load_for_inference(build('normal', arch=arch), path)


@pytest.mark.parametrize('name', ['b.safetensors', 'b.pth'])
def test_backbone_takes_the_tensors_of_the_file_without_a_copy(name, backbone, save):
    model = MODELS.build(backbone_cfg())
    before = dict(model.named_parameters())
    addresses = {key: value.data_ptr() for key, value in before.items()}
    load_backbone(model, save(backbone.state_dict(), name))
    for key, value in model.named_parameters():
        assert value is before[key]  # an optimizer may hold it
        assert value.data_ptr() != addresses[key]
        assert value.requires_grad and value.is_contiguous()
        assert torch.equal(value, dict(backbone.named_parameters())[key])


def test_parameters_never_share_memory_of_a_file(backbone, save):
    state, flat = backbone.state_dict(), torch.zeros(64)
    state['blocks.0.ln1.weight'] = state['blocks.0.ln2.weight']
    state['blocks.1.ln1.weight'] = flat[:32]
    state['blocks.1.ln2.weight'] = torch.ones(64)[::2]
    model = MODELS.build(backbone_cfg())
    load_backbone(model, save(state, 'shared.pth'))
    for key, value in model.state_dict().items():
        assert torch.equal(value, state[key]), key
    parameters = list(model.parameters())
    assert len({p.untyped_storage().data_ptr() for p in parameters}) == len(parameters)
    assert all(p.untyped_storage().nbytes() == p.nbytes for p in parameters)


def test_training_may_start_with_a_new_head(backbone, build):
    model = build('pose', 5)
    warning = check_training(match(backbone.state_dict(), model, 'f'), 'f')
    assert 'start untrained; missing in the checkpoint: head.deconv' in warning
    warning = check_training(match(build('pose', 17).state_dict(), model, 'f'), 'f')
    assert (
        'head.conv_pose.weight: checkpoint (17, 8, 1, 1), model (5, 8, 1, 1)' in warning
    )
    assert 'head.conv_pose.bias: checkpoint (17,), model (5,)' in warning
    assert 'deconv' not in warning
    assert check_training(match(official(model), model, 'f'), 'f') is None
    state = model.state_dict()
    state['head.deconv_layers.0.weight'] = torch.zeros(32, 8, 4, 4)
    message = r'deconv_layers\.0\.weight: checkpoint \(32, 8, 4, 4\).*init_cfg'
    with pytest.raises(CheckpointError, match=message):
        check_training(match(state, model, 'f'), 'f')


def test_resume_wants_the_same_model(build):
    model = build('pose', 5)
    check_resume(match(model.state_dict(), model, 'f'), 'f')
    found = match(build('pose', 17).state_dict(), model, 'f')
    message = r'cannot resume from f: .*\(17, 8, 1, 1\).*by load_from instead'
    with pytest.raises(CheckpointError, match=message):
        check_resume(found, 'f')
    extra = {**model.state_dict(), 'head.more': torch.zeros(1)}
    with pytest.raises(CheckpointError, match='unknown to the model: head'):
        check_resume(match(extra, model, 'f'), 'f')


def test_summary_counts_and_long_lists_are_cut(build):
    model = build('normal')
    state = {**official(model), 'extra': torch.zeros(1)}
    del state['decode_head.conv_normal.bias']
    found = match(state, model, 'f')
    count = len(model.state_dict()) - 1
    assert found.summary() == f'{count} keys matched, 1 missing, 1 unexpected'
    with pytest.raises(CheckpointError, match='missing in the checkpoint: decode_head'):
        check_inference(found, 'f')
    found = match({'backbone.cls_token': torch.zeros(1, 1, 32)}, model, 'f')
    assert f'and {count - 8} more' in found.details()


def test_last_layers():
    last = [
        'head.conv_pose.weight',
        'decode_head.conv_seg.bias',
        'head.final_layer.bias',
    ]
    others = [
        'head.conv_layers.0.weight', 'decode_head.deconv_layers.0.weight',
        'decode_head.scale_final_layer.5.weight', 'backbone.ln1.weight',
        'decode_head.input_conv.0.weight',
    ]  # fmt: skip
    assert all(is_last_layer(key) for key in last)
    assert not any(is_last_layer(key) for key in others)


def test_model_of_another_kind_is_matched_plainly():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    state = prefixed(model.state_dict(), 'module.')
    del state['module.1.num_batches_tracked']
    found = match(state, model, 'f')
    check_inference(found, 'f')
    assert found.missing == ['1.num_batches_tracked']


def test_weights_may_be_read_as_bf16(build, save):
    saved = build('normal')
    model = build('normal', seed=1)
    load_for_inference(model, save(official(saved)), dtype=torch.bfloat16)
    weight = model.backbone.blocks[0].attn.wq.weight
    assert torch.equal(weight, saved.backbone.blocks[0].attn.wq.weight.bfloat16())
    periods = saved.backbone.rope_embed.periods
    assert torch.equal(model.backbone.rope_embed.periods, periods)
    # and a bf16 file keeps the model's own precision
    state = {k: v.bfloat16() for k, v in official(saved).items()}
    other = build('normal', seed=1)
    load_for_inference(other, save(state))
    assert other.backbone.cls_token.dtype == torch.float32


def test_weights_that_stay_on_meta_are_an_error(build, save, backbone):
    from sapiens2_mm.checkpoint import SkipInit

    with SkipInit(on_meta=True):
        model = MODELS.build(model_cfg('normal').model)
    assert model.decode_head.conv_normal.weight.is_meta
    with pytest.raises(CheckpointError, match='without values'):
        load_for_inference(model, save(backbone.state_dict()), strict=False)


def test_transformers_backbone_of_a_task_file(build, save, tmp_path):
    from sapiens2_mm.checkpoint.layouts.convert import convert_checkpoint

    saved, path = build('pointmap'), str(tmp_path / 'hf.safetensors')
    convert_checkpoint(save(official(saved)), path, 'transformers')
    alone = randomized(MODELS.build(backbone_cfg()), 3)
    load_backbone(alone, path)
    for key, value in alone.state_dict().items():
        assert torch.equal(value, saved.backbone.state_dict()[key]), key
    with pytest.raises(CheckpointError, match='holds no normal model of transformers'):
        load_for_inference(build('normal'), path)
