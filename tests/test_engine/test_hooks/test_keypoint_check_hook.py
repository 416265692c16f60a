import pytest
from mmengine.config import Config
from mmengine.runner import Runner

from sapiens2_mm.engine.launch import build_runner

pytest.importorskip('mmpose')
pytest.importorskip('pycocotools')

NAME = 'sapiens2-tiny_udp-heatmap_1xb8-600_synthetic-humans-256x192.py'


@pytest.fixture
def config(repo_dir, mini_coco, table5, tmp_path):
    """The tiny config on 4 images of 5 keypoints, 2 iterations."""
    root = str(mini_coco({}, {}, {}, {}).parent)
    cfg = Config.fromfile(repo_dir / 'configs/pose' / NAME)
    for loader in (cfg.train_dataloader, cfg.val_dataloader, cfg.test_dataloader):
        loader.num_workers = 0
        loader.persistent_workers = False
        loader.batch_size = 2
        loader.dataset.update(
            data_root=root, ann_file='annotations.json', metainfo=table5
        )
    cfg.model.backbone.arch = dict(
        embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64
    )
    cfg.model.head.update(
        in_channels=32, deconv_out_channels=(8, 8), conv_out_channels=(8,),
        out_channels=5,
    )  # fmt: skip
    cfg.train_cfg.update(max_iters=2, val_interval=2)
    cfg.work_dir = str(tmp_path / 'work')
    return cfg


def test_own_keypoints_train_and_validate(config):
    runner = Runner.from_cfg(config)
    runner.train()
    assert runner.iter == 2
    assert runner.message_hub.get_scalar('val/coco/AP').current() >= 0


def test_head_of_another_size(config):
    config.model.head.out_channels = 8
    runner = Runner.from_cfg(config)
    message = '5 keypoints and 5 sigmas, the head has out_channels=8'
    with pytest.raises(ValueError, match=message):
        runner.train()
    assert runner.iter == 0
    for phase in ('val', 'test'):
        with pytest.raises(ValueError, match=message):
            getattr(Runner.from_cfg(config), phase)()


@pytest.mark.parametrize('sigmas', [[], [0.05] * 17])
def test_sigmas_of_another_number(config, sigmas):
    config.train_dataloader.dataset.metainfo.sigmas = sigmas
    with pytest.raises(ValueError, match=f'5 keypoints, {len(sigmas)} sigmas'):
        Runner.from_cfg(config).train()


def test_table_of_another_size_in_validation(config):
    del config.val_dataloader.dataset['metainfo']
    with pytest.raises(ValueError, match=r'annotation 0: .* expected 308'):
        Runner.from_cfg(config).train()


@pytest.mark.parametrize('sigmas', [[], [0.05] * 17])
def test_tools_name_the_three_numbers_before_they_build(config, sigmas):
    config.model = dict(type='nothing.Buildable', head=dict(out_channels=8))
    config.val_dataloader.dataset.metainfo.sigmas = sigmas
    config.train_dataloader = None
    message = f'5 keypoints and {len(sigmas)} sigmas, the head has out_channels=8'
    with pytest.raises(ValueError, match=message):
        build_runner(config)
