"""Test-time augmentation of segmentors [mmseg]."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.structures import PixelData
from mmseg.models.segmentors import SegTTAModel
from mmseg.structures import SegDataSample
from torch import Tensor

from sapiens2_mm.datasets.metainfo.mirror_pairs import mirrored_ids
from sapiens2_mm.registry import MODELS


@MODELS.register_module()
class Sapiens2SegTTAModel(SegTTAModel):
    """Mean of the class probabilities of all views of an image.

    In a mirrored view left and right parts change places, so its class channels are
    swapped back before the mean.

    Args:
        flip_pairs: pairs of class ids that are each other's mirror image. None takes
            the pairs of the dataset, which travel with the samples under the meta key
            ``flip_pairs``.
        *args, **kwargs: arguments of mmengine's ``BaseTTAModel``.

    Raises:
        ValueError: if a mirrored view comes without known pairs, or with a pair that
            is not of two classes of the model; names the pair.
    """

    def __init__(
        self,
        *args: Any,
        flip_pairs: Sequence[tuple[int, int]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.flip_pairs = flip_pairs
        self.module.test_cfg['return_logits'] = True

    def merge_preds(
        self, data_samples_list: list[list[SegDataSample]]
    ) -> list[SegDataSample]:
        """Results of the first view of each image, with the merged label map."""
        results = []
        for views in data_samples_list:
            total = None
            for view in views:
                prob = view.seg_logits.data.softmax(0)
                del view.seg_logits
                if view.metainfo.get('flip'):
                    prob = prob[self._mirror_order(view, len(prob))]
                total = prob if total is None else total.add_(prob)
            merged = views[0]
            merged.pred_sem_seg = PixelData(data=total.argmax(0, keepdim=True))
            results.append(merged)
        return results

    def _mirror_order(self, view: SegDataSample, num_classes: int) -> Tensor:
        """Class channel of the mirrored view that answers for each class."""
        pairs = self.flip_pairs
        if pairs is None:
            pairs = view.metainfo.get('flip_pairs')
        if pairs is None:
            raise ValueError(
                'Sapiens2SegTTAModel: mirrored views need flip_pairs; name it in the '
                'meta_keys of the packing step, or give it to tta_model ([] if no '
                'class has a side)'
            )
        if view.metainfo['flip_direction'] != 'horizontal':
            return torch.arange(num_classes)
        return torch.from_numpy(mirrored_ids(pairs, num_classes))
