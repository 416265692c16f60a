"""Every config we ship: loads, builds, and is listed in its metafile."""

import json
import re
from pathlib import Path

import pytest
import torch
import yaml
from mmengine.config import Config
from mmengine.registry import DefaultScope

from sapiens2_mm.registry import DATASETS, MODELS

ROOT = Path(__file__).parent.parent / 'configs'
CONFIGS = sorted(path for path in ROOT.glob('*/*.py') if path.parent.name != '_base_')
FOLDERS = sorted({path.parent for path in CONFIGS})
SCOPES = {'udp-heatmap': 'mmpose', 'deconv': 'mmseg'}  # by method
# Names that mmengine or torch own; everything else carries its library's prefix.
ROOT_TYPES = {
    'AdamW', 'CheckpointHook', 'ConstantLR', 'CosineAnnealingLR', 'DefaultSampler',
    'DistSamplerSeedHook', 'DumpResults', 'EMAHook', 'ExponentialMovingAverage',
    'InfiniteSampler', 'IterTimerHook', 'Kaiming', 'LinearLR', 'LocalVisBackend',
    'LoggerHook', 'MultiStepLR', 'Normal', 'OptimWrapper', 'Pad',
    'ParamSchedulerHook', 'PolyLR', 'Pretrained', 'RandomApply', 'RandomResize',
    'SGD', 'TensorboardVisBackend', 'TestTimeAug', 'default_collate', 'pseudo_collate',
}  # fmt: skip


def config_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def all_types(node) -> list[str]:
    """Every value of a key ``type`` inside a config."""
    if isinstance(node, dict):
        found = [node['type']] if isinstance(node.get('type'), str) else []
        if '_scope_' in node:
            found = [f'{node["_scope_"]}.{name}' for name in found]
        return found + [t for value in node.values() for t in all_types(value)]
    if isinstance(node, list | tuple):
        return [t for value in node for t in all_types(value)]
    return []


def sizes_of(node) -> set[tuple[int, int]]:
    """(height, width) of every step inside a pipeline that makes the model's input."""
    if isinstance(node, list | tuple):
        return {size for item in node for size in sizes_of(item)}
    if not isinstance(node, dict):
        return set()
    kind = node.get('type', '').split('.')[-1]
    if kind in ('AreaCubicResize', 'Letterbox', 'DenseResize'):
        return {tuple(node['size'])}
    if kind in ('Sapiens2TopdownAffine', 'Resize'):
        return {tuple(node['input_size' if 'input_size' in node else 'scale'][::-1])}
    if kind == 'MultiViewCrop':
        (height, width), *rest = [view['size'] for view in node['views']]
        assert all(size == (height // 2, width // 2) for size in rest)
        return {(height, width)}
    return {size for value in node.values() for size in sizes_of(value)}


@pytest.mark.parametrize('path', CONFIGS, ids=config_id)
def test_types_carry_their_scope(path):
    cfg = Config.fromfile(path)
    bare = {t for t in all_types(cfg._cfg_dict) if '.' not in t}
    assert bare <= ROOT_TYPES
    expected = SCOPES.get(path.stem.split('_')[1], 'sapiens2_mm')
    assert cfg.default_scope == expected
    assert 'custom_imports' not in cfg


@pytest.mark.parametrize('path', CONFIGS, ids=config_id)
def test_model_builds_in_a_foreign_scope(path, monkeypatch):
    for host in ('mmpose', 'mmseg'):
        pytest.importorskip(host)
    cfg = Config.fromfile(path)
    with (
        DefaultScope.overwrite_default_scope('acme'),
        torch.device('meta'),
    ):
        model = MODELS.build(cfg.model)
    assert sum(p.numel() for p in model.parameters()) > 1000


SIZES = r'sapiens2-(0\.1|0\.8|1|5)b|sapiens-(0\.6|1|2)b'
VARIANTS = [p for p in CONFIGS if re.match(SIZES, p.name)]


@pytest.mark.parametrize('path', VARIANTS, ids=config_id)
def test_another_size_states_what_differs(path):
    lines = [line.strip() for line in path.read_text().splitlines()]
    longest = 24 if '-4k_' in path.name else 15  # another resolution changes more
    assert len([line for line in lines if line and line[0] != '#']) <= longest
    cfg = Config.fromfile(path)
    family, size = path.name.split('_')[0].split('-')[:2]
    assert cfg.model.get('backbone', cfg.model).arch == f'{family}_{size}'


@pytest.mark.parametrize('path', CONFIGS, ids=config_id)
def test_length_and_resolution_agree_everywhere(path):
    cfg = Config.fromfile(path)
    if 'train_cfg' not in cfg:  # a backbone alone
        return
    assert cfg.param_scheduler[-1].end == cfg.train_cfg.max_iters
    begins = [scheduler.begin for scheduler in cfg.param_scheduler]
    assert begins == [0, *(scheduler.end for scheduler in cfg.param_scheduler[:-1])]
    height, width = cfg.model.backbone.img_size
    assert path.stem.endswith(f'{height}x{width}')
    for name in ('train_pipeline', 'val_pipeline', 'test_pipeline', 'tta_pipeline'):
        assert sizes_of(cfg.get(name, [])) <= {(height, width)}
    for split in ('train', 'val', 'test'):
        if loader := cfg.get(f'{split}_dataloader'):
            assert sizes_of(loader.dataset.pipeline) == {(height, width)}


@pytest.mark.parametrize(
    'path', [p for p in CONFIGS if '-4k_' in p.name], ids=config_id
)
def test_output_of_4k_is_2k(path):
    """Heatmaps have a quarter of the sides; targets have the size of the output."""
    cfg = Config.fromfile(path)
    assert cfg.model.get('backbone', cfg.model).use_tokenizer
    if 'train_cfg' not in cfg:
        return
    if path.parent.name == 'pretrain':
        assert cfg.model.reconstruction_loss.target_scale == 0.5
        assert cfg.model.neck.out_channels == 3 * 32 * 32
        assert cfg.train_dataloader.prefetch_factor == 1
        return
    assert cfg.recompute == 'full'
    head = cfg.model.get('head') or cfg.model.decode_head
    if path.parent.name == 'pose':
        size = [64 * 2 ** len(head.deconv_out_channels), head.decoder.heatmap_size[1]]
        assert size == [1024, 1024]
        return
    stages = head.get('upsample_channels') or head.deconv_out_channels
    assert 64 * 2 ** len(stages) == 2048
    (stride,) = strides_of(cfg.train_dataloader.dataset.pipeline)
    assert stride == 2


def strides_of(pipeline) -> list[int]:
    """Strides of the targets that the steps of a pipeline make."""
    names = ('map_stride', 'label_stride')
    return [step[name] for step in pipeline for name in names if name in step]


@pytest.mark.parametrize('folder', FOLDERS, ids=lambda path: path.name)
def test_metafile_lists_the_configs_of_its_folder(folder):
    meta = yaml.safe_load((folder / 'metafile.yml').read_text())
    listed = {
        Path(entry['Config']).name for entry in meta['Models'] if entry.get('Config')
    }
    assert listed == {path.name for path in CONFIGS if path.parent == folder}
    assert (folder / 'README.md').is_file()


def test_index_lists_every_metafile():
    index = yaml.safe_load((ROOT / 'model-index.yml').read_text())
    listed = {(ROOT.parent / entry).resolve() for entry in index['Import']}
    assert listed == {path.resolve() for path in ROOT.glob('*/metafile.yml')}


def test_pretraining_has_one_recipe():
    """Sizes differ, and lengths; what keeps the contrast alive does not."""
    base = Config.fromfile(ROOT / '_base_' / 'models' / 'sapiens2_pretrain.py').model
    assert base.backbone.layer_scale_init_value == 1.0
    sizes = {'hidden_dims', 'bottleneck_dims', 'num_prototypes'}
    recipe = {key: value for key, value in base.items() if key not in ('neck', 'head')}
    for path in ROOT.glob('pretrain/*_mae-contrast*.py'):
        model = Config.fromfile(path).model
        assert model.backbone.layer_scale_init_value == 1.0, path
        assert {k: v for k, v in model.head.items() if k not in sizes} == {
            k: v for k, v in base.head.items() if k not in sizes
        }, path
        for part in recipe.keys() - {'backbone', 'reconstruction_loss'}:
            assert model[part] == base[part], (path, part)
        assert model.keys() == base.keys(), path


def test_tiny_pretraining_sees_no_image_that_its_probes_validate_on(data_dir):
    pytest.importorskip('mmpretrain')
    root = data_dir / 'synthetic_humans'
    seen, validated = set(), set()
    for path in CONFIGS:
        if not path.name.startswith('sapiens2-tiny_'):
            continue
        cfg = Config.fromfile(path)
        if path.parent.name == 'pretrain':
            dataset = {**cfg.train_dataloader.dataset, 'data_root': str(root)}
            dataset = DATASETS.build({**dataset, 'pipeline': []})
            seen |= {sample['img_path'] for sample in dataset}
        elif path.parent.name == 'probe':
            images = json.loads(
                (root / cfg.val_dataloader.dataset.ann_file).read_text()
            )
            validated |= {str(root / image['file_name']) for image in images['images']}
    assert {Path(name).stem for name in seen} == {f'00000{n}' for n in range(4)}
    assert {Path(name).stem for name in validated} == {'000004', '000005'}
