from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.logging import MMLogger
from mmengine.runner import Runner

from sapiens2_mm.apis import init_model
from sapiens2_mm.engine.hooks import MetainfoCheckHook
from sapiens2_mm.engine.hooks.metainfo_check_hook import check_metainfo
from sapiens2_mm.engine.launch import build_runner
from sapiens2_mm.registry import HOOKS

pytest.importorskip('mmpose')
pytest.importorskip('pycocotools')

from mmpose.models.heads import HeatmapHead


def test_old_names_build_it():
    for name in ('MetainfoCheckHook', 'KeypointCheckHook', 'ClassCheckHook'):
        hook = HOOKS.build(dict(type=f'sapiens2_mm.{name}'))
        assert type(hook) is MetainfoCheckHook


def test_own_keypoints_train_and_validate(pose_config):
    runner = Runner.from_cfg(pose_config)
    runner.train()
    assert runner.iter == 2
    assert runner.message_hub.get_scalar('val/coco/AP').current() >= 0


def test_head_of_another_size(pose_config):
    pose_config.model.head.out_channels = 8
    runner = Runner.from_cfg(pose_config)
    message = '5 keypoints, 5 sigmas, .*5 flip_indices.*the head has out_channels=8'
    with pytest.raises(ValueError, match=message):
        runner.train()
    assert runner.iter == 0
    for phase in ('val', 'test'):
        with pytest.raises(ValueError, match=message):
            getattr(Runner.from_cfg(pose_config), phase)()
    with pytest.raises(ValueError, match=message):
        init_model(pose_config)


def test_keypoints_of_validation_in_another_order(log):
    names = ['nose', 'left', 'right']
    loaders = [
        SimpleNamespace(
            dataset=SimpleNamespace(metainfo=dict(keypoint_id2name=dict(enumerate(n))))
        )
        for n in (names, names[::-1])
    ]
    runner = SimpleNamespace(
        model=torch.nn.Module(),
        train_dataloader=loaders[0],
        val_dataloader=loaders[1],
        val_loop=True,
    )
    MetainfoCheckHook().before_train(runner)
    assert 'validation against training: 2 names are in another order' in log.text


@pytest.mark.parametrize('sigmas', [[], [0.05] * 17])
def test_sigmas_of_another_number(pose_config, sigmas):
    pose_config.train_dataloader.dataset.metainfo.sigmas = sigmas
    with pytest.raises(ValueError, match=f'5 keypoints, {len(sigmas)} sigmas'):
        Runner.from_cfg(pose_config).train()


def test_metainfo_of_another_size_in_validation(pose_config):
    del pose_config.val_dataloader.dataset['metainfo']
    with pytest.raises(ValueError, match=r'annotation 0: .* expected 308'):
        Runner.from_cfg(pose_config).train()


@pytest.mark.parametrize('sigmas', [[], [0.05] * 17])
def test_tools_name_the_three_numbers_when_the_runner_is_built(pose_config, sigmas):
    pose_config.model.head.out_channels = 8
    pose_config.val_dataloader.dataset.metainfo.sigmas = sigmas
    for loader in ('train_dataloader', 'val_dataloader'):
        pose_config[loader].dataset.ann_file = 'not_read.json'
    pose_config.train_dataloader.dataset.pop('metainfo')
    message = f'5 keypoints, {len(sigmas)} sigmas, the head has out_channels=8'
    with pytest.raises(ValueError, match=message):
        build_runner(pose_config)


def test_joint_weights_that_do_not_reach_the_loss(pose_config, caplog):
    def train():
        runner = Runner.from_cfg(pose_config)
        MMLogger.get_current_instance().addHandler(caplog.handler)
        runner.train()

    dataset = pose_config.train_dataloader.dataset
    pose_config.train_cfg.max_iters = 1
    dataset.metainfo.joint_weights = [1.0, 2.0, 3.0, 1.0, 1.0]
    train()
    assert 'do not reach the loss' not in caplog.text
    crop = next(step for step in dataset.pipeline if 'Affine' in step.type)
    crop.type = 'mmpose.TopdownAffine'
    train()
    assert caplog.text.count('do not reach the loss: crop by sapiens2_mm') == 1


def test_uniform_weights_need_no_crop_of_ours(log):
    meta = dict(dataset_keypoint_weights=np.ones(5, np.float32))
    loader = SimpleNamespace(dataset=SimpleNamespace(metainfo=meta))
    runner = SimpleNamespace(train_dataloader=loader)
    MetainfoCheckHook().before_train_iter(runner, 0, dict(data_samples=None))
    assert not log.text


class ClassHead:
    """Keeps what it is asked about."""

    def __init__(self):
        self.metas = []

    def check_metainfo(self, meta):
        self.metas.append(meta)


def runner_of(train, val=None, wrapped=False):
    model = SimpleNamespace(decode_head=ClassHead())
    loaders = [SimpleNamespace(dataset=each) for each in (train, val)]
    return SimpleNamespace(
        model=SimpleNamespace(module=model) if wrapped else model,
        train_dataloader=loaders[0],
        val_dataloader=loaders[1],
        test_dataloader=loaders[1],
        val_loop=None if val is None else object(),
    ), model.decode_head.metas


@pytest.mark.parametrize('wrapped', [False, True])
def test_each_phase_is_compared(wrapped):
    data = [SimpleNamespace(metainfo=dict(classes=name)) for name in ('ab', 'abc')]
    runner, metas = runner_of(*data, wrapped)
    MetainfoCheckHook().before_train(runner)
    assert [meta['classes'] for meta in metas] == ['ab', 'abc']
    MetainfoCheckHook().before_test(runner)
    assert [meta['classes'] for meta in metas] == ['ab', 'abc', 'abc']


def test_ignored_labels_of_all_parts():
    part = SimpleNamespace(metainfo={}, ignore_index=254)
    wrapped = SimpleNamespace(dataset=SimpleNamespace(ignore_index=255))
    joined = SimpleNamespace(metainfo={}, datasets=[wrapped, SimpleNamespace(), part])
    runner, metas = runner_of(joined)
    MetainfoCheckHook().before_train(runner)
    assert sorted(meta['ignore_index'] for meta in metas) == [254, 255]
    runner, metas = runner_of(SimpleNamespace())
    MetainfoCheckHook().before_train(runner)
    assert metas == [{'ignore_index': None}]


@pytest.mark.parametrize('num_sigmas, out_channels', [(5, 17), (17, 5), (0, 5)])
@pytest.mark.parametrize('keys', ['keypoint_info', 'keypoint_id2name'])
def test_keypoints_of_a_head_of_mmpose(num_sigmas, out_channels, keys):
    head = HeatmapHead(8, out_channels, deconv_out_channels=None)
    meta = {keys: dict.fromkeys(range(5), 'a'), 'sigmas': np.ones(num_sigmas)}
    numbers = f"'{keys}': 5, 'sigmas': {num_sigmas}}}, HeatmapHead has out_channels="
    with pytest.raises(ValueError, match=f'{numbers}{out_channels};'):
        check_metainfo(SimpleNamespace(head=head), meta)
    head = HeatmapHead(8, 5, deconv_out_channels=None)
    check_metainfo(SimpleNamespace(head=head), {**meta, 'sigmas': np.ones(5)})


@pytest.mark.parametrize(
    'meta, message',
    [
        (dict(classes='abc'), "'classes': 3}, FCNHead has num_classes=2"),
        (dict(ignore_index=0), "'ignore_index': 0}, FCNHead has ignore_index=255"),
    ],
)
def test_classes_of_a_head_of_mmseg(meta, message):
    fcn = pytest.importorskip('mmseg.models').FCNHead
    loss = dict(type='mmseg.CrossEntropyLoss')
    head = fcn(
        in_channels=8,
        channels=8,
        num_classes=2,
        out_channels=1,
        threshold=0.5,
        loss_decode=loss,
    )
    model = SimpleNamespace(decode_head=head)
    check_metainfo(model, dict(classes='ab', ignore_index=255, palette=None))
    check_metainfo(model, dict(classes=None, ignore_index=None))
    with pytest.raises(ValueError, match=message):
        check_metainfo(model, meta)
