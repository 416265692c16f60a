"""People by a detector of mmdet."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from torch import nn

from sapiens2_mm.apis.init_model import init_model
from sapiens2_mm.apis.pipeline import inference_pipeline

from .person_detector import PersonDetector


class MMDetDetector(PersonDetector):
    """A detector by its config and checkpoint, such as one of mmdet's RTMDet.

    The compiled operators of mmcv are not needed where the model itself has none.

    Args:
        config: file or object, or a model that is built already, with ``cfg`` and
            ``dataset_meta``.
        checkpoint: see ``init_model``.
        device: where the model goes.
        score_thr: see ``PersonDetector``.
        nms_thr: see ``PersonDetector``; above that of the config it changes nothing.
        max_people: see ``PersonDetector``.
        cfg_options: settings that override the config's.

    Raises:
        CheckpointError: if the checkpoint cannot be read or does not fit the model.
        FileNotFoundError: if the config or checkpoint does not exist.
        ImportError: without mmdet.
        ValueError: see ``PersonDetector``; if no class of the model is ``'person'``.
    """

    def __init__(
        self,
        config: str | Path | Config | nn.Module,
        checkpoint: str | Path | None = None,
        device: str | torch.device = 'cpu',
        *,
        score_thr: float = 0.3,
        nms_thr: float = 0.65,
        max_people: int | None = None,
        cfg_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(score_thr, nms_thr, max_people)
        if not isinstance(config, nn.Module):
            if find_spec('mmdet') is None:
                raise ImportError(
                    'MMDetDetector needs mmdet; install sapiens2_mm[demo]'
                )
            config = init_model(config, checkpoint, device, cfg_options)
        self.model = config
        self.name = Path(self.model.cfg.filename or type(self.model).__name__).stem
        self._pipeline = inference_pipeline(self.model.cfg)
        self._label = _person(self.model.dataset_meta)

    @torch.no_grad()
    def detect(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sample = self._pipeline(dict(img=image, img_path=None, img_id=0))
        (output,) = self.model.test_step(pseudo_collate([sample]))
        found = output.pred_instances
        found = found[found.labels == self._label]
        return found.bboxes.float().cpu().numpy(), found.scores.float().cpu().numpy()


def _person(meta: dict[str, Any]) -> int:
    """The label of the class ``'person'``."""
    # checkpoints of older releases have the keys in capitals
    classes = [*{key.lower(): value for key, value in meta.items()}.get('classes', ())]
    if 'person' not in classes:
        raise ValueError(
            'MMDetDetector: a class of the model must be "person", its metainfo has '
            f'{classes}; correct the metainfo of test_dataloader.dataset'
        )
    return classes.index('person')
