"""COCO and COCO-WholeBody, for models of their or of other keypoints [mmpose]."""

import os.path as osp
from typing import Any

import numpy as np
from mmengine.fileio import exists
from mmpose.datasets.datasets.body import CocoDataset
from mmpose.datasets.datasets.wholebody import CocoWholeBodyDataset

from sapiens2_mm.registry import DATASETS

from ..guided_dataset import GuidedDataset
from ..metainfo.of_config import config_metainfo


class ScoredByNameDataset(GuidedDataset):
    """In front of a dataset of mmpose: for tests of models of other keypoints.

    The samples then have the flip partners of the model's keypoints and no annotated
    points. The metainfo is the model's too, with that of the annotations as
    ``annotated``, by which ``Sapiens2CocoMetric`` scores the points of equal names.

    Args:
        predicts: config of a dataset whose keypoints the model predicts, such as
            ``dict(type='sapiens2_mm.Humans308Dataset')``; None: those of the file.
        bbox_file: detections in COCO's form, below ``data_root``; None takes the
            annotated boxes.
        kwargs: see ``GuidedDataset`` and the dataset of mmpose.

    Raises:
        FileNotFoundError: if the folder of images or a file is missing.
    """

    scored_by_name = True

    def __init__(
        self,
        *args: Any,
        predicts: dict | None = None,
        bbox_file: str | None = None,
        **kwargs: Any,
    ) -> None:
        if bbox_file:
            bbox_file = osp.join(kwargs.get('data_root') or '', bbox_file)
        super().__init__(*args, bbox_file=bbox_file, **kwargs)
        self._predicted = config_metainfo(predicts)

    @property
    def metainfo(self) -> dict[str, Any]:
        """Of the keypoints that the model predicts."""
        annotated = super().metainfo
        predicted = getattr(self, '_predicted', None)
        return {**predicted, 'annotated': annotated} if predicted else annotated

    def load_data_list(self) -> list[dict]:
        for path in (self.data_prefix['img'], self.ann_file, self.bbox_file):
            if path and not exists(path):
                raise FileNotFoundError(f'{path} does not exist')
        return super().load_data_list()

    def get_data_info(self, idx: int) -> dict:
        data_info = super().get_data_info(idx)
        if self._predicted:
            number = self._predicted['num_keypoints']
            shared = data_info.keys() & self._predicted.keys()
            data_info.update(
                {key: self._predicted[key] for key in shared - {'num_keypoints'}},
                keypoints=np.zeros((1, number, 2), np.float32),
                keypoints_visible=np.zeros((1, number), np.float32),
            )
        return data_info


@DATASETS.register_module()
class Sapiens2CocoDataset(ScoredByNameDataset, CocoDataset):
    """mmpose's ``CocoDataset``, 17 keypoints; arguments of ``ScoredByNameDataset``."""


@DATASETS.register_module()
class Sapiens2CocoWholeBodyDataset(ScoredByNameDataset, CocoWholeBodyDataset):
    """mmpose's ``CocoWholeBodyDataset``, 133 keypoints.

    Arguments are those of ``ScoredByNameDataset``.
    """
