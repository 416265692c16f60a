import pytest
from mmengine.runner import Runner

from sapiens2_mm.engine.launch import build_runner

pytest.importorskip('mmpose')
pytest.importorskip('pycocotools')


def test_own_keypoints_train_and_validate(pose_config):
    runner = Runner.from_cfg(pose_config)
    runner.train()
    assert runner.iter == 2
    assert runner.message_hub.get_scalar('val/coco/AP').current() >= 0


def test_head_of_another_size(pose_config):
    pose_config.model.head.out_channels = 8
    runner = Runner.from_cfg(pose_config)
    message = '5 keypoints and 5 sigmas, the head has out_channels=8'
    with pytest.raises(ValueError, match=message):
        runner.train()
    assert runner.iter == 0
    for phase in ('val', 'test'):
        with pytest.raises(ValueError, match=message):
            getattr(Runner.from_cfg(pose_config), phase)()


@pytest.mark.parametrize('sigmas', [[], [0.05] * 17])
def test_sigmas_of_another_number(pose_config, sigmas):
    pose_config.train_dataloader.dataset.metainfo.sigmas = sigmas
    with pytest.raises(ValueError, match=f'5 keypoints, {len(sigmas)} sigmas'):
        Runner.from_cfg(pose_config).train()


def test_table_of_another_size_in_validation(pose_config):
    del pose_config.val_dataloader.dataset['metainfo']
    with pytest.raises(ValueError, match=r'annotation 0: .* expected 308'):
        Runner.from_cfg(pose_config).train()


@pytest.mark.parametrize('sigmas', [[], [0.05] * 17])
def test_tools_name_the_three_numbers_before_they_build(pose_config, sigmas):
    pose_config.model = dict(type='nothing.Buildable', head=dict(out_channels=8))
    pose_config.val_dataloader.dataset.metainfo.sigmas = sigmas
    pose_config.train_dataloader = None
    message = f'5 keypoints and {len(sigmas)} sigmas, the head has out_channels=8'
    with pytest.raises(ValueError, match=message):
        build_runner(pose_config)
