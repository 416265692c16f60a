"""Test-time augmentation of top-down pose estimators [mmpose]."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from mmengine.model import BaseTTAModel
from mmengine.structures import PixelData
from mmpose.structures import PoseDataSample
from torch import Tensor

from sapiens2_mm.registry import MODELS


@MODELS.register_module()
class Sapiens2PoseTTAModel(BaseTTAModel):
    """Mean of the heatmaps of all views of a person, from one forward pass.

    A view is a crop by any box, as it is or mirrored: its heatmaps are mirrored back,
    then sampled at the pixels of the first view; a pixel outside a view has no part in
    the mean there. The views come from ``TestTimeAug`` in the pipeline, mirrored ones
    too, so ``flip_test`` of the estimator is not used.

    Args:
        *args, **kwargs: arguments of mmengine's ``BaseTTAModel``; the head of the
            estimator is a ``Sapiens2PoseHead`` that decodes gaussian ``UDPHeatmap``.

    Raises:
        ValueError: for another head; for views of unequal ``input_size``, turned upside
            down, or of which the first is mirrored.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not getattr(self.module.head, 'is_udp', False):
            raise ValueError(
                'Sapiens2PoseTTAModel averages heatmaps of a Sapiens2PoseHead with '
                'decoder UDPHeatmap of heatmap_type "gaussian", got '
                f'{self.module.head}; test without it'
            )

    def test_step(self, data: dict[str, list[list]]) -> list[PoseDataSample]:
        """Samples of the first view with the predictions of all.

        Args:
            data: ``inputs`` and ``data_samples``, for each view those of the persons.
        """
        model, num_views = self.module, len(data['inputs'])
        batch = {
            key: [item for view in views for item in view]
            for key, views in data.items()
        }
        batch = model.data_preprocessor(batch, False)
        samples = batch['data_samples']
        if model.metainfo is not None:
            for sample in samples:
                sample.set_metainfo(model.metainfo)
        heatmaps = model(**batch, mode='tensor').float()
        model.head.check_input_size(heatmaps, samples)
        num_persons = len(samples) // num_views
        merged = torch.stack(
            [
                _mean(heatmaps[person::num_persons], samples[person::num_persons])
                for person in range(num_persons)
            ]
        )
        fields = None
        if model.test_cfg.get('output_heatmaps', False):
            fields = [PixelData(heatmaps=maps) for maps in merged]
        preds = model.head.decode(merged)
        return model.add_pred_to_datasample(preds, fields, samples[:num_persons])

    def merge_preds(self, data_samples_list: list) -> list:
        raise NotImplementedError('heatmaps are merged, not predictions')


def _mean(heatmaps: Tensor, views: list[PoseDataSample]) -> Tensor:
    """(K, h, w) of one person from (V, K, h, w) and the samples of the views."""
    metas = [view.metainfo for view in views]
    mirrored = [bool(meta.get('flip')) for meta in metas]
    directions = {meta['flip_direction'] for meta in metas if meta.get('flip')}
    if mirrored[0] or directions - {'horizontal'}:
        raise ValueError(
            'Sapiens2PoseTTAModel: the first view must be as it is, the others may be '
            f'mirrored left to right, got flip={mirrored} in directions {directions}; '
            'correct RandomFlip of tta_pipeline'
        )
    upright = [
        maps.flip(-1)[meta['flip_indices']] if flip else maps
        for maps, meta, flip in zip(heatmaps, metas, mirrored, strict=True)
    ]
    centers = np.stack([meta['input_center'] for meta in metas]).astype(float)
    widths = np.array([meta['ori_shape'][1] for meta in metas])
    centers[mirrored, 0] = (widths - 1 - centers[:, 0])[mirrored]
    scales = np.stack([meta['input_scale'] for meta in metas]).astype(float)
    # Where the pixels of the first view, -1 to 1 from edge to edge, lie in each view.
    affine = np.zeros((len(metas), 2, 3))
    affine[:, [0, 1], [0, 1]] = scales[0] / scales
    affine[:, :, 2] = 2 * (centers[0] - centers) / scales
    grid = F.affine_grid(
        torch.from_numpy(affine).to(heatmaps),
        [len(metas), 1, *heatmaps.shape[-2:]],
        align_corners=True,
    )
    inside = (grid.abs() < 1 + 1e-4).all(-1)[:, None]
    aligned = F.grid_sample(
        torch.stack(upright), grid, padding_mode='border', align_corners=True
    )
    return (aligned * inside).sum(0) / inside.sum(0)
