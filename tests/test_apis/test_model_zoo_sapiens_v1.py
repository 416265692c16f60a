"""Names, configs and files of the first Sapiens."""

from argparse import ArgumentParser, Namespace

import pytest
from mmengine.config import Config

from sapiens2_mm.apis import find_model, list_models, model_options
from sapiens2_mm.checkpoint import SkipInit
from sapiens2_mm.checkpoint.io.hub import HubAddress
from sapiens2_mm.checkpoint.matching import match
from sapiens2_mm.registry import MODELS

SIZES = ('0.3b', '0.6b', '1b', '2b')
NOT_RELEASED = {'sapiens-2b_pose', 'sapiens-2b_seg'}
# Parameters of the encoder, in pretraining and in the tasks; millions of the heads.
PRETRAINED = (307_295_232, 635_910_400, 1_140_739_584, 2_133_912_960)
ENCODERS = (306_244_608, 634_597_120, 1_139_163_648, 2_131_943_040)
HEADS = {
    'pose': (23.44, 26.58, 29.73, 34.45),
    'pose-coco': (23.21, 26.36, 29.51, 34.22),
    'pose-coco-wholebody': (23.30, 26.45, 29.60, 34.31),
    'seg': (33.25, 36.40, 39.54, 44.26),
    'normal': (33.23, 36.38, 39.52, 44.24),
    'depth': (13.67, 15.24, 16.81, 19.17),
}
NAMES = [f'sapiens-{size}_{task}' for size in SIZES for task in (*HEADS, 'pretrain')]
OFFICIAL = {  # ours -> official
    'head.conv_pose.': 'head.final_layer.',
    'conv_normal.': 'conv_seg.',
    'conv_depth.': 'conv_seg.',
}


def test_published_models_are_listed():
    assert set(list_models('sapiens-*')) == set(NAMES) - NOT_RELEASED
    for name in NOT_RELEASED:
        assert find_model(name).weights is None


@pytest.mark.parametrize('name', NAMES)
def test_config_is_that_of_the_published_file(name):
    for host in ('mmpretrain', 'mmpose', 'mmseg'):
        pytest.importorskip(host)
    info = find_model(name)
    size, task = name.removeprefix('sapiens-').split('_')
    if info.weights:
        address = HubAddress.parse(info.weights)
        repos = (f'facebook/sapiens-{task}-{size}', 'noahcao/sapiens-pose-coco')
        assert address.repo == repos[task.startswith('pose-')]
        assert address.file.rpartition('/')[2].startswith(f'sapiens_{size}_')
        assert address.file.endswith('.pth')
        assert info.license == 'CC BY-NC 4.0'
    with SkipInit(on_meta=True):
        model = MODELS.build(Config.fromfile(info.config).model)
    count = sum(p.numel() for p in model.parameters())
    number = SIZES.index(size)
    if task == 'pretrain':
        assert count == PRETRAINED[number]
    else:
        head = (count - ENCODERS[number]) / 1e6
        assert head == pytest.approx(HEADS[task][number], abs=0.01)
    # what the publishers' file holds, by name and shape, fills the model
    state = model.state_dict()
    for ours, official in OFFICIAL.items():
        state = {key.replace(ours, official): v for key, v in state.items()}
    assert task in ('pretrain', 'seg') or state.keys() != model.state_dict().keys()
    found = match(state, model, name)
    assert not found.missing and not found.unexpected and not found.mismatched


def test_every_export_is_named(repo_dir):
    """Six models of a size come as TorchScript and as bfloat16 of torch.export."""
    text = (repo_dir / 'configs/sapiens_v1/metafile.yml').read_text()
    exports = [line.strip('- ') for line in text.splitlines() if '.pt2' in line]
    assert len(exports) == 2 * (4 + 3 + 3 + 4 + 4)  # pretrain, pose, seg, depth, normal
    for address in exports:
        kind = 'torchscript' if 'torchscript/' in address else 'bfloat16'
        assert HubAddress.parse(address).file.endswith(f'_{kind}.pt2')
        assert '_clean' not in address


@pytest.mark.parametrize(
    'size, family', [('1b', 'sapiens2-1b'), ('sapiens-1b', 'sapiens-1b')]
)
def test_size_on_the_command_line_may_name_the_generation(size, family, monkeypatch):
    asked = []

    def inferencer(name, **options):
        asked.append(name)
        return Namespace(task=Namespace(name=name))

    monkeypatch.setattr(model_options, 'Inferencer', inferencer)
    monkeypatch.setattr(model_options, 'share_backbones', lambda models: 0)
    parser = ArgumentParser()
    model_options.add_model_options(parser)
    arguments = ['--task', 'pose,seg', '--size', size, '--model', 'sapiens-2b_normal']
    model_options.load_models(parser.parse_args(arguments))
    assert asked == [f'{family}_pose', f'{family}_seg', 'sapiens-2b_normal']
