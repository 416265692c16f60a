"""From a config and a checkpoint to a model that predicts."""

import copy
import logging
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.logging import print_log
from mmengine.registry import init_default_scope
from torch import nn

from sapiens2_mm.checkpoint import SkipInit, load_for_inference
from sapiens2_mm.datasets.metainfo.of_config import config_metainfo
from sapiens2_mm.engine.hooks.metainfo_check_hook import check_metainfo
from sapiens2_mm.registry import MODELS

from .model_zoo import find_model


def init_model(
    config: str | Path | Config,
    checkpoint: str | Path | None = None,
    device: str | torch.device = 'cpu',
    cfg_options: dict[str, Any] | None = None,
    *,
    dtype: torch.dtype | None = None,
    strict: bool = True,
) -> nn.Module:
    """Build a model and load its weights.

    The model is built without memory for its weights, and the tensors of the file are
    read into place: no random filling, no second copy.

    Args:
        config: a config file or object, or a name of ``list_models()`` such as
            ``'sapiens2-1b_pose'``.
        checkpoint: any form ``read_checkpoint`` reads. None takes the published
            weights if ``config`` names such a model; otherwise the weights are random
            numbers, with a warning.
        device: where the model goes.
        cfg_options: settings that override the config's.
        dtype: of the weights, ``torch.bfloat16`` halves memory. None keeps float32.
        strict: refuse a checkpoint that lacks weights, such as a backbone without a
            head. False leaves them random, with a warning.

    Returns:
        The model in evaluation mode, with ``cfg`` and ``dataset_meta``.

    Raises:
        CheckpointError: if the checkpoint cannot be read or does not fit the model.
        FileNotFoundError: if the config or checkpoint file does not exist.
        ValueError: if there is no model of that name, or head and metainfo differ in
            the number of keypoints or classes.
    """
    if isinstance(config, str) and _is_name(config):
        model_info = find_model(config)
        config, checkpoint = model_info.config, checkpoint or model_info.weights
    if not isinstance(dtype, torch.dtype | None):
        raise TypeError(f'init_model: dtype must be a torch.dtype, got {dtype!r}')
    cfg = _load_config(config, cfg_options)
    init_default_scope(cfg.get('default_scope', 'mmengine'))
    model_cfg = copy.deepcopy(cfg.model)
    model_cfg.get('backbone', {}).pop('init_cfg', None)  # the checkpoint has it all
    meta: dict = {}
    if checkpoint is None:
        print_log(
            'init_model: no checkpoint was given, the weights are random',
            logger='current',
            level=logging.WARNING,
        )
        model = MODELS.build(model_cfg)
        model.init_weights()
    elif strict:
        with SkipInit(on_meta=True):
            model = MODELS.build(model_cfg)
        meta = load_for_inference(model, str(checkpoint), device, dtype)
    else:
        model = MODELS.build(model_cfg)
        model.init_weights()
        meta = load_for_inference(model, str(checkpoint), device, dtype, strict=False)
    model = model.to(device)
    model.cfg = cfg
    model.dataset_meta = meta.get('dataset_meta') or _dataset_meta(cfg)
    check_metainfo(model, model.dataset_meta)
    return model.eval()


def _is_name(config: str) -> bool:
    return Path(config).suffix != '.py' and not Path(config).is_file()


def _load_config(
    config: str | Path | Config, cfg_options: dict[str, Any] | None
) -> Config:
    if isinstance(config, str | Path):
        if not Path(config).is_file():
            raise FileNotFoundError(f'config {str(config)!r} does not exist')
        config = Config.fromfile(config)
    elif isinstance(config, Config):
        config = copy.deepcopy(config)
    else:
        raise TypeError(f'config must be a path or a Config, got {type(config)}')
    if cfg_options:
        config.merge_from_dict(cfg_options)
    return config


def _dataset_meta(cfg: Config) -> dict:
    """Class names, keypoint names and so on, from the config's first data set."""
    for name in ('test_dataloader', 'val_dataloader', 'train_dataloader'):
        if meta := config_metainfo((cfg.get(name) or {}).get('dataset')):
            return meta
    return {}
