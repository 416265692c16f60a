"""Whatever a run may keep in its checkpoint is tested, resumed and converted."""

import copy
from collections import Counter, OrderedDict, defaultdict
from enum import Enum
from inspect import isclass as is_class
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mmengine.config import Config, ConfigDict
from mmengine.evaluator import BaseMetric, Evaluator
from mmengine.model import BaseModel
from mmengine.registry import OPTIMIZERS, PARAM_SCHEDULERS
from mmengine.structures import InstanceData
from public_layouts import write_layout
from torch import nn
from toy_run import StopAfter, ToyData, toy_runner

from sapiens2_mm import evaluation
from sapiens2_mm.checkpoint import read_checkpoint
from sapiens2_mm.checkpoint.layouts.convert import convert_checkpoint
from sapiens2_mm.datasets.metainfo import humans29, humans308
from sapiens2_mm.registry import DATASETS, METRICS

# Optimizers that mmengine registers and that train no model by themselves -> why.
NO_TRAINING = {
    'Optimizer': 'the base class',
    'LBFGS': 'calls the model itself, for which mmengine has no wrapper',
    'ZeroRedundancyOptimizer': 'its state is spread over processes',
}
# Those that train other models than a backbone -> a layer, and the type of its input.
OTHER_LAYERS = {
    'Muon': (nn.Linear(4, 2, bias=False), torch.float),  # matrices alone
    'SparseAdam': (nn.Embedding(32, 2, sparse=True), torch.long),  # sparse gradients
}
OPTIMIZER_OPTIONS = {'Adafactor': dict(relative_step=False)}  # or it has no rate
OPTIMIZER_NAMES = sorted(set(OPTIMIZERS.module_dict) - set(NO_TRAINING))
SETTINGS = {
    'CosineRestart': dict(periods=[2, 9], restart_weights=[1, 0.5], eta_min=0.0),
    'Exponential': dict(gamma=0.9),
    'MultiStep': dict(milestones=[1, 3]),
    'OneCycle': dict(eta_max=0.1, total_steps=20),
    'ReduceOnPlateau': dict(monitor='toy/score', by_epoch=True),
    'Step': dict(step_size=2),
    'CosineAnnealing': dict(T_max=20, eta_min=0.0),
}


def schedule(ending: str) -> list[dict]:
    """A scheduler of each kind for the learning rate (LR), the momentum or any."""
    names = [n for n in sorted(PARAM_SCHEDULERS.module_dict) if n.endswith(ending)]
    kinds = {name: SETTINGS.get(name.removesuffix(ending), {}) for name in names}
    if ending == 'ParamScheduler':
        for name in names:  # OneCycle is for the rate alone
            of = 'lr' if name.startswith('OneCycle') else 'weight_decay'
            kinds[name] = dict(kinds[name], param_name=of)
    return [dict(type=n, **{'by_epoch': False, 'end': 20, **kinds[n]}) for n in names]


class OneLayer(BaseModel):
    """A layer that takes four numbers of each image."""

    def __init__(self, layer: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.layer, self.dtype = copy.deepcopy(layer), dtype

    def forward(self, inputs: list, data_samples: Any = None, mode: str = '') -> Any:
        out = self.layer(torch.stack(list(inputs))[:, 0, 0, :4].abs().to(self.dtype))
        return dict(loss=(out - 1).square().mean()) if mode == 'loss' else [out]


def live(
    folder: Path, optimizer: str = 'AdamW', schedulers: list | None = None, **options
) -> dict:
    """Save, test, resume and convert; the content of the last checkpoint."""
    other = OTHER_LAYERS.get(optimizer)

    def runner(name: str, *hooks, **more):
        model = OneLayer(*other) if other else None
        built = toy_runner(
            folder / name, model, hooks=hooks, iterations=4, **more, **options
        )
        built.param_schedulers = [dict(s) for s in schedulers or schedule('LR')]
        own = OPTIMIZER_OPTIONS.get(optimizer, {})
        built.optim_wrapper['optimizer'] = dict(type=optimizer, lr=1e-3, **own)
        if other:  # no layers to decay, and sparse gradients are not clipped
            built.optim_wrapper = dict(optimizer=built.optim_wrapper['optimizer'])
        return built

    runner('a', StopAfter(2)).train()
    source = str(folder / 'a' / 'iter_2.pth')
    runner('b', load_from=source).test()
    runner('a', resume=True).train()
    path = folder / 'a' / 'iter_4.pth'
    if other:
        return read_checkpoint(path)
    convert_checkpoint(path, folder / 'c.safetensors', 'official', task='pretrain')
    content = read_checkpoint(path)
    weights = read_checkpoint(folder / 'c.safetensors')['state_dict']
    for key, value in weights.items():
        assert torch.equal(value, content['state_dict'][f'backbone.{key}']), key
    return content


@pytest.mark.parametrize('optimizer', OPTIMIZER_NAMES)
def test_every_optimizer_with_every_learning_rate_schedule(optimizer, tmp_path):
    content = live(tmp_path, optimizer)
    assert len(content['param_schedulers']) == 10
    assert content['meta']['optimizers'] == {'': optimizer.removeprefix('Torch')}


@pytest.mark.parametrize('optimizer', ['SGD', 'AdamW'])
def test_every_momentum_schedule(optimizer, tmp_path):
    assert len(live(tmp_path, optimizer, schedule('Momentum'))['param_schedulers']) == 9


def test_every_schedule_of_another_setting(tmp_path):
    content = live(tmp_path, 'AdamW', schedule('ParamScheduler'))
    assert len(content['param_schedulers']) == 10


def test_optimizers_are_left_out_for_a_reason():
    assert set(NO_TRAINING) | set(OTHER_LAYERS) < set(OPTIMIZERS.module_dict)
    torch_names = {name for name, value in vars(torch.optim).items() if is_class(value)}
    known = {name.removeprefix('Torch') for name in OPTIMIZERS.module_dict}
    assert torch_names <= known


AVERAGES = [
    dict(type='EMAHook', ema_type='ExponentialMovingAverage', update_buffers=True),
    dict(type='EMAHook', ema_type='MomentumAnnealingEMA', gamma=10),
    dict(type='EMAHook', ema_type='StochasticWeightAverage', interval=2),
]


@pytest.mark.parametrize('average', AVERAGES)
def test_every_kind_of_averaged_weights(average, tmp_path):
    content = live(tmp_path, averages=average)
    assert any(key.endswith('cls_token') for key in content['ema_state_dict'])


class EveryResult(BaseMetric):
    """Results of all kinds that metrics return, ours and those of the hosts."""

    default_prefix = 'toy'

    def process(self, data_batch: Any, data_samples: Any) -> None:
        self.results.append(0)

    def compute_metrics(self, results: list) -> OrderedDict:
        return OrderedDict(
            score=np.float64(0.5),
            single=np.float32(0.5),
            half=np.float16(0.5),
            count=np.int64(3),
            whole=2,
            unknown=float('nan'),
            tensor=torch.tensor(0.5),
            classes=np.array(['one', 'two']),
            table=dict(one=[0.5, None], two=(np.nan, True)),
            flags=np.array([True, False]),
            text='best',
        )


def test_every_kind_of_result(tmp_path):
    saving = dict(save_best='toy/score', rule='greater')
    content = live(
        tmp_path, checkpoint=saving, val_evaluator=Evaluator([EveryResult()])
    )
    info = content['message_hub']['runtime_info']
    assert info['val/toy/table']['one'] == [0.5, None]
    assert info['val/toy/classes'].tolist() == ['one', 'two']


class EveryMetric(BaseMetric):
    """Gives what each shipped metric gives, for any predictions."""

    metrics: list[tuple[BaseMetric, list[dict]]] = []

    def process(self, data_batch: Any, data_samples: Any) -> None:
        self.results.append(0)

    def compute_metrics(self, results: list) -> dict:
        merged = {}
        for metric, samples in self.metrics:
            metric.process(None, samples)
            found = metric.evaluate(len(samples))
            assert found and not set(found) & set(merged), metric
            merged |= found
        return merged


def dense_sample() -> dict:
    names = ('normal', 'pointmap', 'albedo', 'foreground', 'depth', 'alpha')
    sample = dict(img_path='0.jpg', gt_mask=torch.ones(1, 8, 8, dtype=torch.bool))
    for name in names:
        channels = 1 if name in ('depth', 'alpha') else 3
        for kind in ('gt', 'pred'):
            sample[f'{kind}_{name}'] = torch.rand(channels, 8, 8)
    scales = dict.fromkeys(('gt_scale', 'pred_scale'), torch.ones(1))
    return dict(sample, gt_foreground_mask=sample['gt_mask'], **scales)


def coco_sample(repo_dir, folder, name):
    """Options of a metric of public data, metainfo, and a person's prediction."""
    folder.mkdir()
    write_layout(name, folder)
    cfg = Config.fromfile(repo_dir / f'configs/_base_/datasets/public/{name}.py')
    source = dict(cfg.test_dataloader.dataset, data_root=str(folder), pipeline=[])
    dataset = DATASETS.build(source)
    sample = dict(dataset[0], gt_instances=dict(bbox_scores=np.ones(1)))
    scores = np.ones(sample['keypoints'].shape[:2])
    found = dict(keypoints=sample['keypoints'], keypoint_scores=scores)
    options = {k: v for k, v in cfg.test_evaluator.items() if k != 'type'}
    sample['pred_instances'] = found
    return dict(options, prefix=f'public_{name}'), dataset.metainfo, sample


def test_every_shipped_metric(repo_dir, tmp_path, mini_coco, table5, monkeypatch):
    mmpose = pytest.importorskip('mmpose.structures')
    path = mini_coco(dict())
    data = dict(ann_file=path.name, data_root=str(path.parent), metainfo=table5)
    dataset = DATASETS.build(
        dict(type='sapiens2_mm.Humans308Dataset', test_mode=True, **data)
    )
    truth = dataset[0]
    points = InstanceData(
        keypoints=truth['keypoints'], keypoint_scores=np.ones((1, 5), np.float32)
    )
    boxes = InstanceData(bboxes=truth['bbox'], bbox_scores=truth['bbox_score'])
    ids = {key: truth[key] for key in ('img_id', 'id', 'category_id')}
    pose = mmpose.PoseDataSample(metainfo=ids, gt_instances=boxes)
    pose.pred_instances = points
    pose = pose.to_dict()
    label = dict(data=torch.zeros(1, 4, 4, dtype=torch.long))
    seg = dict(pred_sem_seg=label, gt_sem_seg=label, img_path='0.jpg')
    own = {  # options, metainfo, sample
        'KeypointOKSMetric': (dict(ann_file=str(path)), dataset.metainfo, pose),
        'Sapiens2IoUMetric': ({}, dict(classes=('a', 'b')), seg),
        'Sapiens2CocoMetric': coco_sample(repo_dir, tmp_path / 'coco', 'coco'),
        'Sapiens2CocoWholeBodyMetric': coco_sample(
            repo_dir, tmp_path / 'wholebody', 'coco_wholebody'
        ),
    }

    monkeypatch.setattr(EveryMetric, 'metrics', [])
    for name in [*evaluation.__all__, *evaluation.HOST_CLASSES]:
        options, metainfo, sample = own.get(name) or ({}, {}, dense_sample())
        metric = METRICS.build(dict(type=f'sapiens2_mm.{name}', **options))
        metric.dataset_meta = metainfo
        EveryMetric.metrics.append((metric, [sample]))
    schedulers = [dict(type='ConstantLR')]
    evaluator = Evaluator([EveryMetric()])
    content = live(tmp_path / 'runs', 'AdamW', schedulers, val_evaluator=evaluator)
    kept = content['message_hub']['log_scalars']
    assert len([key for key in kept if key.startswith('val/')]) > 40
    assert kept['val/coco/AP'].current() == kept['val/mIoU'].current() / 100 == 1


METAINFOS = {
    'humans308': humans308.METAINFO,
    'humans29': humans29.METAINFO,
    'none': {},  # of unlabeled images
    'config': ConfigDict(classes=('one',), table=dict(a=[1, dict(b=None)])),
    'containers': dict(
        classes=['one'],
        palette=[[0, 0, 0], (255, 0, 0)],
        label_map={0: 255, 1: 0, -1: 255},
        names={'a', 'b'},
        frozen=frozenset([1]),
        counts=Counter('aab'),
        ordered=OrderedDict(a=1),
        default=defaultdict(list, a=[1]),
        deep=[[[dict(a=(1, 2.5, None, True, 'x', b'y', 1 + 2j))]]],
    ),
    'arrays': dict(
        empty=np.array([]),
        no_rows=np.zeros((0, 3), np.float32),
        text=np.array(['left', 'right']),
        bytes=np.array([b'left']),
        flags=np.array([True]),
        column=np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        scalar=np.array(1.5),
        half=np.ones(2, np.float16),
        number=np.int16(3),
        word=np.str_('left'),
        truth=np.bool_(True),
        tensor=torch.arange(3),
        weight=nn.Parameter(torch.ones(1)),
        dtype=torch.float32,
        size=torch.Size([2]),
        device=torch.device('cpu'),
    ),
    'paths': dict(root=Path('data'), nested=[Path('a') / 'b']),
}


@pytest.mark.parametrize('name', METAINFOS)
def test_every_form_of_metainfo(name, tmp_path, monkeypatch):
    monkeypatch.setattr(ToyData, 'metainfo', METAINFOS[name])
    kept = live(tmp_path)['meta']['dataset_meta']
    assert set(kept) == set(METAINFOS[name])
    for key, value in METAINFOS[name].items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(kept[key], value)
        elif not isinstance(value, Path | list | ConfigDict):
            np.testing.assert_equal(kept[key], value)


def test_parsed_keypoint_metainfo(tmp_path, monkeypatch):
    parse = pytest.importorskip('mmpose.datasets.datasets.utils').parse_pose_metainfo
    metainfo = parse(dict(humans308.METAINFO, skeleton_info={}))
    monkeypatch.setattr(ToyData, 'metainfo', metainfo)
    kept = live(tmp_path)['meta']['dataset_meta']
    assert kept['keypoint_id2name'][307] == metainfo['keypoint_id2name'][307]
    assert kept['skeleton_link_colors'].shape == metainfo['skeleton_link_colors'].shape


class Side(Enum):
    LEFT = 0


@pytest.mark.parametrize('value', [range(3), np.arange(2, dtype='>i4'), Side.LEFT])
def test_metainfo_that_could_not_be_read_again_ends_the_run_early(
    value, tmp_path, monkeypatch
):
    monkeypatch.setattr(ToyData, 'metainfo', dict(classes=('one',), own=value))
    name = type(value).__name__.removeprefix('nd').replace('array', 'dtype')
    message = f'the metainfo of ToyData .* numpy arrays: .*{name}'
    with pytest.raises(TypeError, match=message):
        toy_runner(tmp_path, iterations=1).train()
    assert not list(tmp_path.glob('*.pth'))
