"""Segmentation from config to result: the tools' way, in one process, tiny sizes."""

import copy

import numpy as np
import pytest
import torch
from PIL import Image

pytest.importorskip('mmseg')

from broken_images import stops_with_finite_weights
from mmengine.config import Config
from mmengine.registry import init_default_scope

from sapiens2_mm.datasets.metainfo.humans29 import CLASS_WEIGHTS, METAINFO
from sapiens2_mm.engine import launch
from sapiens2_mm.registry import DATASETS, MODELS, TRANSFORMS

TINY = 'configs/seg/sapiens2-tiny_deconv_1xb4_synthetic-humans-256x192.py'
OFFICIAL = 'configs/seg/sapiens2-0.4b_deconv_8xb12-20k_humans29-1024x768.py'
SIZE = (64, 48)


def set_size(node, size=SIZE):
    """Give every resize of a config another size."""
    if isinstance(node, dict):
        if node.get('type') == 'sapiens2_mm.AreaCubicResize':
            node['size'] = size
        node = list(node.values())
    if isinstance(node, list | tuple):
        for child in node:
            set_size(child, size)


@pytest.fixture
def tiny(repo_dir, data_dir, tmp_path):
    """The tiny config, tinier, on the six rendered people."""
    cfg = Config.fromfile(repo_dir / TINY)
    arch = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)
    cfg.model.backbone.arch = arch
    cfg.model.backbone.img_size = SIZE
    cfg.model.decode_head.update(
        in_channels=32, deconv_out_channels=(8,) * 4, conv_out_channels=(8,)
    )
    set_size(cfg._cfg_dict)
    for name in ('train', 'val', 'test'):
        loader = cfg[f'{name}_dataloader']
        loader.update(batch_size=2, num_workers=0, persistent_workers=False)
        loader.dataset.update(
            data_root=str(data_dir / 'synthetic_humans'), indices=None
        )
    cfg.train_cfg.update(max_iters=2, val_interval=2)
    cfg.default_hooks.checkpoint.interval = 2
    cfg.work_dir = str(tmp_path / 'work')
    cfg.launcher = 'none'
    cfg.env_cfg.mp_cfg.mp_start_method = 'fork'
    cfg.experiment_name = tmp_path.name
    return cfg


def run(cfg, mode='train'):
    cfg = copy.deepcopy(cfg)
    cfg.experiment_name += f'_{np.random.default_rng().integers(10**9)}'
    runner = launch.build_runner(cfg)
    return runner, getattr(runner, mode)()


def test_a_loss_that_is_not_finite_stops_the_run(tiny):
    """Also of a config that does not inherit the hook."""
    tiny.train_cfg.update(max_iters=9, val_interval=99)
    tiny.default_hooks.checkpoint.interval = 1
    del tiny.default_hooks['non_finite_loss']
    stops_with_finite_weights(launch.build_runner(tiny), 'loss_dice', r'\d\.jpg')


@pytest.mark.parametrize('amp', [False, True])
def test_train_validate_and_test(tiny, amp, tmp_path):
    if amp:
        launch.use_bf16_autocast(tiny)
    _, model = run(tiny)
    assert all(p.isfinite().all() for p in model.parameters())
    checkpoint = tmp_path / 'work' / 'iter_2.pth'
    meta = torch.load(checkpoint, weights_only=False)['meta']['dataset_meta']
    assert meta['classes'] == METAINFO['classes']
    assert meta['palette'] == METAINFO['palette']
    tiny.load_from = str(checkpoint)
    _, scores = run(tiny, 'test')
    assert {'aAcc', 'mIoU', 'mAcc'} <= set(scores)
    launch.use_tta(tiny)
    _, with_views = run(tiny, 'test')
    assert 0 <= with_views['mIoU'] <= 100


def test_other_class_list_keeps_all_but_the_last_layer(tiny, tmp_path, data_dir):
    run(tiny)
    own = copy.deepcopy(tiny)
    own.load_from = str(tmp_path / 'work' / 'iter_2.pth')
    own.model.decode_head.update(
        num_classes=3,
        loss_decode=[dict(type='sapiens2_mm.WeightedCrossEntropyLoss')],
    )
    chosen = dict(classes=('Background', 'Face_Neck', 'Hair'))
    for name in ('train', 'val', 'test'):
        own[f'{name}_dataloader'].dataset.metainfo = chosen
    own.optim_wrapper.optimizer.lr = 0.0
    _, model = run(own)
    before = torch.load(own.load_from, weights_only=False)['state_dict']
    after = model.state_dict()
    assert after['decode_head.conv_seg.weight'].shape[0] == 3
    for key, value in after.items():
        if 'conv_seg' not in key:
            assert torch.equal(value, before[key]), key


def test_format_only_needs_no_masks(tiny, tmp_path, data_dir):
    run(tiny)
    tiny.load_from = str(tmp_path / 'work' / 'iter_2.pth')
    tiny.test_dataloader.dataset.update(
        ann_file='', data_prefix=dict(img_path='rgb', seg_map_path=None)
    )
    with pytest.raises(ValueError, match=r'labels are missing for .*rgb/000000.jpg'):
        run(tiny, 'test')
    out = tmp_path / 'out'
    tiny.test_evaluator.update(format_only=True, output_dir=str(out))
    _, scores = run(tiny, 'test')
    assert scores == {}
    files = sorted(out.glob('*.png'))
    assert [f.stem for f in files] == [f'{i:06d}' for i in range(6)]
    image = Image.open(files[0])
    assert image.size == (288, 384) and np.asarray(image).max() < 29


def test_number_of_classes_is_compared_first(tiny):
    tiny.model.decode_head.update(num_classes=7, loss_decode=None)
    with pytest.raises(ValueError, match=r'29 classes, .*the head has num_classes=7'):
        run(tiny)


def test_other_input_sizes_need_no_other_weights(tiny):
    init_default_scope('mmseg')
    model = MODELS.build(tiny.model)
    state = model.state_dict()
    for size in ((96, 64), (128, 96)):
        cfg = copy.deepcopy(tiny.model)
        cfg.backbone.img_size = size
        other = MODELS.build(cfg)
        other.load_state_dict(state, strict=True)
        assert other(torch.randn(1, 3, *size)).shape == (1, 29, *size)


def test_mirrored_view_swaps_the_class_channels(tiny):
    """A model that answers from the picture alone must agree with its mirror image."""
    init_default_scope('mmseg')
    module = MODELS.build(tiny.model)

    def left_or_right(inputs, metas):
        # Class 5 (left foot) in the left half of what is seen, 14 in the right half.
        logits = inputs.new_zeros(len(inputs), 29, *inputs.shape[2:])
        middle = inputs.shape[3] // 2
        logits[:, 5, :, :middle] = 9
        logits[:, 14, :, middle:] = 9
        return logits

    module.encode_decode = left_or_right
    model = MODELS.build(dict(tiny.tta_model, module=module))
    pipeline = TRANSFORMS.build(dict(type='Compose', transforms=tiny.tta_pipeline))
    image = np.zeros((40, 30, 3), np.uint8)
    pairs = [(5, 14)]
    data = pipeline(dict(img=image, flip_pairs=pairs, seg_map_path=None))
    (result,) = model.test_step({k: [[v] for v in vs] for k, vs in data.items()})
    labels = result.pred_sem_seg.data[0]
    assert labels.shape == (40, 30)
    assert (labels[:, :14] == 5).all() and (labels[:, 16:] == 14).all()

    def views(**extra):
        data = pipeline(dict(img=image, seg_map_path=None, **extra))
        return {k: [[v] for v in vs] for k, vs in data.items()}

    with pytest.raises(ValueError, match=r'mirrored views need flip_pairs; name it in'):
        model.test_step(views())
    with pytest.raises(ValueError, match=r'\(5, 255\) must be two different ids'):
        model.test_step(views(flip_pairs=[(5, 255)]))


@pytest.fixture
def official(repo_dir, data_dir):
    cfg = Config.fromfile(repo_dir / OFFICIAL)
    init_default_scope('mmseg')
    cfg.train_dataloader.dataset.data_root = str(data_dir / 'synthetic_humans')
    cfg.val_dataloader.dataset.data_root = str(data_dir / 'synthetic_humans')
    return cfg


def test_official_pipelines(official):
    np.random.seed(0)
    train = DATASETS.build(official.train_dataloader.dataset)
    for index in range(6):
        sample = train[index % len(train)]
        labels = sample['data_samples'].gt_sem_seg.data
        assert sample['inputs'].shape == (3, 1024, 768)
        assert sample['inputs'].dtype == torch.uint8
        assert labels.shape == (1, 1024, 768)
        assert set(labels.unique().tolist()) <= {*range(29), 255}
        foreground = (labels != 0) & (labels != 255)
        assert foreground.float().mean() >= 0.01
    val = DATASETS.build(official.val_dataloader.dataset)
    sample = val[0]
    assert sample['inputs'].shape == (3, 1024, 768)
    assert sample['data_samples'].gt_sem_seg.data.shape == (1, 384, 288)


def test_official_settings(official):
    head = official.model.decode_head
    assert tuple(head.loss_decode[0].class_weight) == CLASS_WEIGHTS
    assert official.optim_wrapper.optimizer.lr == 5e-4
    assert official.train_cfg.max_iters == official.param_scheduler[1].end == 20_000
    assert official.val_evaluator.nan_to_num == 0
    steps = [step.type for step in official.test_pipeline]
    assert not any('Annotations' in step for step in steps)
