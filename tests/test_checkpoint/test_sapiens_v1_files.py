"""Official files of the first Sapiens, in small: each form loads and gives the numbers
of the hosts. ``pytest -s`` prints the table of configs/sapiens_v1/README.md."""

import io
import zipfile

import numpy as np
import pytest
import torch
from mmengine.config import ConfigDict
from tiny_sapiens_v1 import ARCH, SIZE, Reference, small_config, task  # noqa: F401

from sapiens2_mm.checkpoint import CheckpointError, load_for_inference, read_checkpoint
from sapiens2_mm.checkpoint.layouts.names import to_our_names
from sapiens2_mm.checkpoint.matching import match
from sapiens2_mm.checkpoint.mmengine_loader import load_from_local
from sapiens2_mm.registry import MODELS

FORMS = ('bare .pth', '.pth with meta', 'TorchScript', 'bfloat16 export')


def write(reference, form, path):
    state = reference.state_dict()
    if form == 'bare .pth':
        torch.save(state, path)
    elif form == '.pth with meta':
        meta = dict(cfg=ConfigDict(a=1), epoch=np.int64(3), seed=np.float64(0.5))
        torch.save(dict(state_dict=state, meta=meta), path)
    elif form == 'TorchScript':
        torch.jit.trace(reference, torch.zeros(1, 3, *SIZE)).save(path)
    else:
        content = io.BytesIO()
        torch.save({k: v.bfloat16() for k, v in state.items()}, content)
        with zipfile.ZipFile(path, 'w') as archive:
            archive.writestr('serialized_exported_program.json', '{}')
            archive.writestr('serialized_state_dict.pt', content.getvalue())
            archive.writestr('version', '5.1')


@pytest.mark.filterwarnings('ignore')  # tracing warns of each size it makes constant
@torch.no_grad()
def test_each_form_gives_the_numbers_of_the_hosts(task, repo_dir, tmp_path, log):  # noqa: F811
    reference = Reference(task)
    images = torch.randn(2, 3, *SIZE, generator=torch.Generator().manual_seed(1))
    model = MODELS.build(small_config(repo_dir, task).model).eval()
    for form in FORMS:
        if form == 'bfloat16 export':
            for parameter in reference.parameters():
                parameter.copy_(parameter.bfloat16())
        path = tmp_path / 'file.pt2'
        write(reference, form, path)
        load_for_inference(model, str(path))
        expected = reference(images)
        difference = (model(images, None, 'tensor') - expected).abs().max().item()
        print(f'{task:20} {form:16} {tuple(expected.shape)} {difference:.1e}')
        assert expected.std() > 0.01
        assert difference < 1e-5
        assert '0 missing, 0 unexpected' in log.messages[-1]
        assert 'patch_padding' not in log.text
        log.clear()


def test_wrong_padding_is_refused_where_the_file_tells(task, repo_dir, tmp_path, log):  # noqa: F811
    cfg = small_config(repo_dir, task).model
    right = cfg.backbone.patch_padding
    model = MODELS.build(cfg)
    wrong_cfg = {**cfg, 'backbone': {**cfg.backbone, 'patch_padding': 4}}
    wrong = MODELS.build(wrong_cfg)
    torch.save(Reference(task).state_dict(), tmp_path / 'official.pth')
    message = f'made with patch_padding={right!r}, the backbone has 4; set'
    with pytest.raises(CheckpointError, match=message):
        load_for_inference(wrong, str(tmp_path / 'official.pth'))
    # A run of ours that chose another one loads into a model with that one only.
    torch.save(dict(state_dict=wrong.state_dict()), tmp_path / 'own.pth')
    load_for_inference(wrong, str(tmp_path / 'own.pth'))
    assert 'patch_padding' not in log.text
    with pytest.raises(CheckpointError, match='made with patch_padding=4'):
        load_for_inference(model, str(tmp_path / 'own.pth'))
    state = load_from_local(str(tmp_path / 'own.pth'))['state_dict']  # as runners do
    with pytest.raises(CheckpointError, match='made with patch_padding=4'):
        match(state, model, 'own.pth')


def pretrained_backbone(**options):
    from sapiens2_mm.models import SapiensV1

    options = {'img_size': SIZE, **options}
    model = SapiensV1(ARCH, **options)
    model.init_weights()
    return model


def test_pretrained_file_starts_a_task_and_the_padding_is_said(tmp_path, log):
    pytest.importorskip('mmpretrain')
    pretrained = pretrained_backbone(img_size=64, with_cls_token=True)
    state = dict(pretrained.state_dict())  # as in a file that is not ours: no notes
    path = str(tmp_path / 'sapiens_epoch_1600_clean.pth')
    torch.save(state, path)
    model = pretrained_backbone(
        patch_padding=2, init_cfg=dict(type='Pretrained', checkpoint=path)
    )
    assert torch.equal(
        model.layers[1].attn.qkv.weight, state['layers.1.attn.qkv.weight']
    )
    assert model.pos_embed.shape == (1, 12, 32)
    warnings = [r.message for r in log.records if r.levelname == 'WARNING']
    (warning,) = [text for text in warnings if 'patch_padding' in text]
    assert 'unknown patch_padding' in warning and 'the backbone has 2' in warning


@pytest.mark.parametrize(
    'mine, other', [('Sapiens', 'Sapiens2'), ('Sapiens2', 'Sapiens')]
)
def test_the_generations_are_told_apart(mine, other, tmp_path):
    pytest.importorskip('mmpretrain')
    from sapiens2_mm.models import Sapiens2

    models = dict(Sapiens=pretrained_backbone(), Sapiens2=Sapiens2(ARCH, img_size=SIZE))
    torch.save(models[other].state_dict(), tmp_path / 'a.pth')
    expected = {'Sapiens2': 'of Sapiens2', 'Sapiens': 'of the first Sapiens'}[other]
    with pytest.raises(CheckpointError, match=expected):
        load_for_inference(models[mine], str(tmp_path / 'a.pth'))


def test_more_blocks_are_refused(tmp_path):
    pytest.importorskip('mmpretrain')
    from sapiens2_mm.models import SapiensV1

    deeper = SapiensV1({**ARCH, 'num_layers': 3}, img_size=SIZE)
    torch.save(deeper.state_dict(), tmp_path / 'a.pth')
    with pytest.raises(CheckpointError, match='of a deeper backbone'):
        load_for_inference(pretrained_backbone(), str(tmp_path / 'a.pth'))


def test_loaders_that_do_not_see_the_model_get_our_names(task):  # noqa: F811
    names = to_our_names(dict(Reference(task).state_dict()))
    predictor = {'pose': 'head.conv_pose', 'seg': 'decode_head.conv_seg'}
    kind = task.split('-')[0]
    assert f'{predictor.get(kind, f"decode_head.conv_{kind}")}.weight' in names


def test_hosts_own_models_keep_their_names():
    """The same backbone with a head of BatchNorm is one of mmpose or mmseg."""
    state = {
        'backbone.pos_embed': torch.zeros(1, 3, 8),
        'backbone.layers.0.attn.qkv.weight': torch.zeros(24, 8),
        'head.deconv_layers.1.running_mean': torch.zeros(8),
        'head.final_layer.weight': torch.zeros(17, 8, 1, 1),
    }
    assert to_our_names(dict(state)) == state


def test_program_is_read_and_not_run(tmp_path):
    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.ModuleList([torch.nn.Linear(2, 3)])
            self.register_buffer('scale', torch.arange(2.0))
            self.options = [1, 2]

        def forward(self, x):
            return x * self.scale

    module = Module()
    torch.jit.script(module).save(tmp_path / 'program.pt2')
    state = read_checkpoint(tmp_path / 'program.pt2')['state_dict']
    assert set(state) == {'inner.0.weight', 'inner.0.bias', 'scale'}
    assert torch.equal(state['inner.0.weight'], module.inner[0].weight)
    assert type(state) is dict
