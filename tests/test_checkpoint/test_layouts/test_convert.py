import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from tiny_models import DEEP_ARCH, SIZE, model_cfg, official

from sapiens2_mm.apis import init_model
from sapiens2_mm.checkpoint import CheckpointError
from sapiens2_mm.checkpoint.layouts.convert import convert_checkpoint
from sapiens2_mm.registry import MODELS

TASKS = ('pose', 'seg', 'normal', 'pointmap', 'matting')
CLASSES = {
    'pose': 'Sapiens2ForPoseEstimation',
    'seg': 'Sapiens2ForSemanticSegmentation',
    'normal': 'Sapiens2ForNormalEstimation',
    'pointmap': 'Sapiens2ForPointmapEstimation',
    'matting': 'Sapiens2ForImageMatting',
}


def outputs(model, image):
    """All outputs of one of our models or of transformers, as a list."""
    with torch.no_grad():
        if hasattr(model, 'data_preprocessor'):
            feats = model.extract_feat(image)
            head = getattr(model, 'head', None) or model.decode_head
            out = head(feats)
            return list(out) if isinstance(out, tuple) else [out]
        out = model(image)
        if 'alphas' in out:
            return [torch.cat([out.foregrounds, out.alphas], dim=1)]
        names = ('heatmaps', 'logits', 'normals', 'pointmaps', 'scales')
        return [out[name] for name in names if name in out]


@pytest.mark.parametrize('task', TASKS)
def test_transformers_computes_the_same(task, build, save, tmp_path):
    transformers = pytest.importorskip('transformers')
    # transformers computes its rotary tables in float32
    model = build(task, arch=DEEP_ARCH, rope_dtype='fp32')
    source = save(model.state_dict(), 'ours.pth')
    entries = convert_checkpoint(source, tmp_path / 'hf', 'transformers')
    assert entries['task'] == task
    config = json.loads((tmp_path / 'hf' / 'config.json').read_text())
    config['image_size'] = list(SIZE)
    (tmp_path / 'hf' / 'config.json').write_text(json.dumps(config))

    theirs, report = getattr(transformers, CLASSES[task]).from_pretrained(
        tmp_path / 'hf', output_loading_info=True
    )
    assert not report['missing_keys'] and not report['unexpected_keys']
    image = torch.randn(2, 3, *SIZE, generator=torch.Generator().manual_seed(1))
    ours, others = outputs(model, image), outputs(theirs.eval(), image)
    assert len(ours) == (2 if task == 'pointmap' else 1)
    for one, other in zip(ours, others, strict=True):
        assert one.std() > 1e-2
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)

    # and back: weights of transformers in our model, by init_model alone
    cfg = model_cfg(task, arch=DEEP_ARCH, rope_dtype='fp32')
    again = init_model(cfg, tmp_path / 'hf')
    for one, other in zip(outputs(again, image), others, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize('task', TASKS)
def test_what_transformers_saves_comes_back_bit_equal(task, build, save, tmp_path):
    transformers = pytest.importorskip('transformers')
    model = build(task)
    convert_checkpoint(save(model.state_dict()), tmp_path / 'hf', 'transformers')
    theirs = getattr(transformers, CLASSES[task]).from_pretrained(tmp_path / 'hf')
    torch.save(theirs.state_dict(), tmp_path / 'theirs.pth')
    again = init_model(model_cfg(task), tmp_path / 'theirs.pth')
    for key, value in again.state_dict().items():
        assert torch.equal(value, model.state_dict()[key]), key


@pytest.mark.parametrize('task', ('pretrain', *TASKS))
@pytest.mark.parametrize('start', ('official', 'ours'))
@pytest.mark.parametrize('middle', ('official', 'ours', 'transformers'))
def test_round_trip_is_bit_equal(task, start, middle, build, backbone, save, tmp_path):
    model = backbone if task == 'pretrain' else build(task)
    state = official(model) if start == 'official' else model.state_dict()
    source = save(state)
    convert_checkpoint(source, tmp_path / 'a.safetensors', middle)
    convert_checkpoint(tmp_path / 'a.safetensors', tmp_path / 'b.safetensors', start)
    result = load_file(tmp_path / 'b.safetensors')
    assert set(result) == set(state)
    assert all(torch.equal(result[key], state[key]) for key in state)
    assert all(result[key].dtype == state[key].dtype for key in state)


def test_header_tells_what_the_file_is(build, save, tmp_path):
    source = save(build('normal').state_dict(), 'run/iter_9.pth')
    returned = convert_checkpoint(source, tmp_path / 'n.safetensors', 'official')
    with safe_open(tmp_path / 'n.safetensors', 'pt') as file:
        assert file.metadata() == returned
    assert returned == {
        'format': 'pt',
        'layout': 'official',
        'arch': 'custom',
        'task': 'normal',
        'source': 'iter_9.pth',
        'embed_dims': '32',
        'num_layers': '2',
        'num_heads': '2',
        'feedforward_channels': '64',
        'patch_size': '16',
    }


def test_bf16_halves_the_weights_and_keeps_the_periods(build, save, tmp_path):
    model = build('normal', rope_dtype='fp32')
    source = save(model.state_dict())
    convert_checkpoint(source, tmp_path / 'n.safetensors', 'ours', torch.bfloat16)
    state = load_file(tmp_path / 'n.safetensors')
    periods = state.pop('backbone.rope_embed.periods')
    assert torch.equal(periods, model.backbone.rope_embed.periods)
    assert {value.dtype for value in state.values()} == {torch.bfloat16}


def test_a_pretraining_checkpoint_gives_its_teacher(backbone, save, tmp_path):
    weights = backbone.state_dict()
    state = {f'backbone.{k}': v + 1 for k, v in weights.items()}
    state |= {f'teacher.backbone.{k}': v for k, v in weights.items()}
    state |= {
        'neck.mask_token': torch.zeros(1, 1, 8),
        'teacher.head.mlp.0.weight': torch.zeros(4, 32),
        'iteration': torch.tensor(7),
    }
    convert_checkpoint(
        save({'state_dict': state}, 'p.pth'), tmp_path / 'p.safetensors', 'official'
    )
    result = load_file(tmp_path / 'p.safetensors')
    assert set(result) == set(weights)
    assert all(torch.equal(result[key], weights[key]) for key in weights)


def test_what_cannot_be_converted_is_refused(build, backbone, save, tmp_path):
    out = tmp_path / 'out.safetensors'
    tokenizer = build('normal', use_tokenizer=True, img_size=(128, 64))
    with pytest.raises(CheckpointError, match='no window tokenizer'):
        convert_checkpoint(save(tokenizer.state_dict()), out, 'transformers')
    albedo = save(build('albedo').state_dict())
    with pytest.raises(CheckpointError, match="no Sapiens2 model for 'albedo'"):
        convert_checkpoint(albedo, out, 'transformers')
    assert convert_checkpoint(albedo, out, 'official')['task'] == 'albedo'
    periods = {**backbone.state_dict()}
    periods['rope_embed.periods'] = periods['rope_embed.periods'] * 2
    with pytest.raises(CheckpointError, match='periods differs from the released'):
        convert_checkpoint(save(periods), out, 'transformers')
    with pytest.raises(CheckpointError, match='no Sapiens2 backbone'):
        convert_checkpoint(save({'fc.weight': torch.zeros(2)}), out, 'ours')
    with pytest.raises(CheckpointError, match="unknown layout 'mmpose'"):
        convert_checkpoint(albedo, out, 'mmpose')
    with pytest.raises(CheckpointError, match='must end with'):
        convert_checkpoint(albedo, tmp_path / 'out.pth', 'ours')
    with pytest.raises(CheckpointError, match="unknown task 'hands'"):
        convert_checkpoint(albedo, out, 'ours', task='hands')
    depth = {**build('normal').state_dict()}
    depth['decode_head.conv_depth.bias'] = depth.pop('decode_head.conv_normal.bias')
    del depth['decode_head.conv_normal.weight']
    with pytest.raises(CheckpointError, match='head of no official task'):
        convert_checkpoint(save(depth), out, 'official')
    assert convert_checkpoint(save(depth), out, 'ours', task='pretrain')


def test_other_channel_numbers_need_the_task(build, save, tmp_path):
    state, out = build('pose', 5).state_dict(), tmp_path / 'b.safetensors'
    convert_checkpoint(save(state), tmp_path / 'a.safetensors', 'transformers')
    with pytest.raises(CheckpointError, match='do not tell its task; name it'):
        convert_checkpoint(tmp_path / 'a.safetensors', out, 'ours')
    convert_checkpoint(tmp_path / 'a.safetensors', out, 'ours', task='pose')
    result = load_file(tmp_path / 'b.safetensors')
    assert all(torch.equal(result[key], state[key]) for key in state)


def test_awkward_tensors_and_destinations(build, save, tmp_path):
    state = build('normal').state_dict()
    patch = 'backbone.patch_embed.projection.weight'
    state[patch] = state[patch].contiguous(memory_format=torch.channels_last)
    block = 'backbone.blocks.0.'  # one tensor, two names
    state[block + 'ln2.weight'] = state[block + 'ln1.weight']
    source, out = save(state, 'a.pth'), tmp_path / 'out.safetensors'
    for path in (source, out):  # at last, in place of its own source
        convert_checkpoint(path, out, 'ours')
        result = load_file(out)
        assert all(torch.equal(result[key], state[key]) for key in state)
    (tmp_path / 'file').touch()
    (tmp_path / 'folder.safetensors').mkdir()
    for name, to, message in (
        ('file', 'transformers', 'is a file already'),
        ('folder.safetensors', 'ours', 'is a folder already'),
        ('hf.pth', 'transformers', 'must end with .safetensors'),
    ):
        with pytest.raises(CheckpointError, match=message):
            convert_checkpoint(source, tmp_path / name, to)


def test_incomplete_file_and_wrong_task_are_refused(build, save, tmp_path):
    state, out = build('normal').state_dict(), tmp_path / 'out.safetensors'
    for key in (
        'backbone.blocks.0.attn.q_norm.weight',
        'backbone.blocks.1.attn.wq.weight',
        'backbone.ln1.weight',
        'decode_head.conv_normal.weight',
    ):
        lacking = {k: v for k, v in state.items() if k != key}
        with pytest.raises(CheckpointError, match=f'incomplete: it lacks {key}'):
            convert_checkpoint(save(lacking), out, 'transformers')
    for task, layer in (
        ('pose', 'deconv_layers.0.'),
        ('seg', 'deconv_layers.0.'),
        ('normal', 'upsample_blocks.0.'),
    ):
        whole = build(task).state_dict()
        start = ('head.' if task == 'pose' else 'decode_head.') + layer
        lacking = {k: v for k, v in whole.items() if not k.startswith(start)}
        assert len(lacking) < len(whole)
        with pytest.raises(CheckpointError, match='a layer of the head is missing at'):
            convert_checkpoint(save(lacking), out, 'official')
    with pytest.raises(CheckpointError, match='holds a normal model, not a pose one'):
        convert_checkpoint(save(state), out, 'ours', task='pose')
    assert not out.exists()


@pytest.mark.parametrize('hidden', [(8,), (8, 4, 4)])
def test_a_scale_head_that_transformers_cannot_build_is_refused(hidden, save, tmp_path):
    cfg = model_cfg('pointmap').model
    cfg.decode_head.scale_hidden_channels = hidden
    source = save(MODELS.build(cfg).state_dict(), 'ours.pth')
    message = r'scale heads with 2 hidden layers, this one has 1|scale_final_layer\.7'
    with pytest.raises(CheckpointError, match=message):
        convert_checkpoint(source, tmp_path / 'hf', 'transformers')
    assert not (tmp_path / 'hf').exists()
    convert_checkpoint(source, tmp_path / 'official.safetensors', 'official')


@pytest.mark.parametrize('task', ['pose', 'seg'])
def test_a_folder_opens_by_the_auto_classes(task, build, save, tmp_path):
    """Names and size are those of the run, numbers ours by the recipe of the page."""
    transformers = pytest.importorskip('transformers')
    state = build(task, 3).state_dict()
    names = dict(enumerate(['nose', 'left eye', 'right eye']))
    meta = dict(classes=[*names.values()]) if task == 'seg' else {}
    meta = dict(dataset_meta=meta or dict(keypoint_id2name=names))
    source = save(dict(state_dict=state, meta=meta), 'ours.pth')
    convert_checkpoint(source, tmp_path / 'hf', 'transformers', image_size=SIZE)

    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path / 'hf')
    assert (processor.size['height'], processor.size['width']) == SIZE
    backbone = transformers.AutoModel.from_pretrained(tmp_path / 'hf')
    assert backbone.config.id2label == names
    assert list(backbone.config.image_size) == list(SIZE)
    theirs = getattr(transformers, CLASSES[task]).from_pretrained(tmp_path / 'hf')
    ours = init_model(model_cfg(task, 3, rope_dtype='fp32'), source)
    ours.backbone.rope_embed.reset_parameters()
    image = torch.randn(1, 3, *SIZE, generator=torch.Generator().manual_seed(1))
    for one, other in zip(
        outputs(ours, image), outputs(theirs.eval(), image), strict=True
    ):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
