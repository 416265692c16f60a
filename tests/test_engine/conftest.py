"""Fixtures of the run tests."""

import logging

import pytest
from mmengine.config import Config
from mmengine.logging import MMLogger

NAME = 'sapiens2-tiny_udp-heatmap_1xb8_humans308-256x192.py'


@pytest.fixture
def pose_config(repo_dir, mini_coco, table5, tmp_path):
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
    # a visualizer of the same name would write into the folder of another test
    cfg.experiment_name = cfg.visualizer.name = tmp_path.name
    return cfg


@pytest.fixture
def lines(monkeypatch):
    """What is logged by the runners of a test, as (level, text)."""
    found = []

    class Keep(logging.Handler):
        def emit(self, record):
            found.append((record.levelname, record.getMessage()))

    handler = Keep()
    original = MMLogger.get_instance.__func__

    def get_instance(cls, *args, **kwargs):
        logger = original(cls, *args, **kwargs)
        if handler not in logger.handlers:
            logger.addHandler(handler)
        return logger

    monkeypatch.setattr(MMLogger, 'get_instance', classmethod(get_instance))
    return found
