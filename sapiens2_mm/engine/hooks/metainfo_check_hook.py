"""Stop early if data and head do not agree on keypoints or classes."""

import logging
from typing import Any

import numpy as np
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.runner import Runner
from torch import nn

from sapiens2_mm.datasets.checking.doubts import (
    log_doubts,
    meta_names,
    order_doubts,
)
from sapiens2_mm.registry import HOOKS


def check_metainfo(model: nn.Module, meta: dict[str, Any]) -> None:
    """Let the head of a model compare itself with the metainfo of a dataset.

    Heads without a method ``check_metainfo``, such as the hosts', are compared by
    their ``out_channels``, ``num_classes`` and ``ignore_index``.

    Raises:
        ValueError: naming the numbers that differ.
    """
    while hasattr(model, 'module'):  # data parallelism or test-time augmentation
        model = model.module
    for name in ('head', 'decode_head'):
        head = getattr(model, name, None)
        if hasattr(head, 'check_metainfo'):
            head.check_metainfo(meta)
        else:
            _check_host_head(head, meta)


def _check_host_head(head: nn.Module | None, meta: dict[str, Any]) -> None:
    keys = ('keypoint_info', 'keypoint_id2name', 'sigmas', 'classes')
    counts = {key: len(meta[key]) for key in keys if meta.get(key) is not None}
    classes = counts.pop('classes', None)
    ignored = meta.get('ignore_index')
    for option, found in (
        ('out_channels', counts),
        ('num_classes', {} if classes is None else dict(classes=classes)),
        ('ignore_index', {} if ignored is None else dict(ignore_index=ignored)),
    ):
        own = getattr(head, option, None)
        if own is not None and set(found.values()) - {own}:
            raise ValueError(
                f'metainfo {meta.get("dataset_name")} has {found}, '
                f'{type(head).__name__} has {option}={own}; these must be equal'
            )


def check_config_metainfo(runner: Runner, cfg: Config) -> None:
    """Compare a built model with the keypoint metainfo that its config spells out.

    Raises:
        ValueError: naming the numbers that differ, before data are read.
    """
    for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        meta = ((cfg.get(name) or {}).get('dataset') or {}).get('metainfo') or {}
        if 'keypoint_info' in meta:
            check_metainfo(runner.model, meta)


@HOOKS.register_module(
    name=['MetainfoCheckHook', 'KeypointCheckHook', 'ClassCheckHook']
)
class MetainfoCheckHook(Hook):
    """Compares the metainfo of the data with the head when a run starts.

    Without it a wrong number of keypoints or classes shows as a broadcast error in the
    first loss, a failed gather on the device, or after the first epoch in the metric.
    It also warns if the ``joint_weights`` of the metainfo do not reach the loss, and
    if validation has the names of training in another order.

    Raises:
        ValueError: see the method ``check_metainfo`` of the heads; before the first
            iteration of training, validation or testing.
    """

    priority = 'VERY_HIGH'

    def before_train(self, runner: Runner) -> None:
        self._compare(runner.model, runner.train_dataloader.dataset)
        if runner.val_loop is not None:
            self.before_val(runner)
            metas = [
                getattr(loader.dataset, 'metainfo', {})
                for loader in (runner.train_dataloader, runner.val_dataloader)
            ]
            doubts = order_doubts(*map(meta_names, metas))
            log_doubts('metainfo of validation against training', list(doubts))

    def before_val(self, runner: Runner) -> None:
        self._compare(runner.model, runner.val_dataloader.dataset)

    def before_test(self, runner: Runner) -> None:
        self._compare(runner.model, runner.test_dataloader.dataset)

    def before_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None
    ) -> None:
        if batch_idx > 0:
            return
        meta = getattr(runner.train_dataloader.dataset, 'metainfo', {})
        weights = meta.get('dataset_keypoint_weights')
        if weights is None or (weights == 1).all():
            return
        for sample in data_batch['data_samples']:
            packed = np.asarray(sample.gt_instance_labels.get('keypoint_weights', 1.0))
            if ((packed == 1) & (weights != 1)).any():
                print_log(
                    'the joint_weights of the metainfo do not reach the loss: crop by '
                    'sapiens2_mm.Sapiens2TopdownAffine, or set '
                    'use_dataset_keypoint_weights=True of mmpose.GenerateTarget',
                    logger='current',
                    level=logging.WARNING,
                )
                return

    @staticmethod
    def _compare(model: nn.Module, dataset: Any) -> None:
        meta = getattr(dataset, 'metainfo', {})
        for ignored in _ignored_labels(dataset) or {None}:
            check_metainfo(model, {**meta, 'ignore_index': ignored})


def _ignored_labels(dataset: Any) -> set[int]:
    """``ignore_index`` of a dataset, or of those it is made of."""
    if hasattr(dataset, 'ignore_index'):
        return {dataset.ignore_index}
    parts = getattr(dataset, 'datasets', [getattr(dataset, 'dataset', None)])
    return set().union(*(_ignored_labels(part) for part in parts if part is not None))
