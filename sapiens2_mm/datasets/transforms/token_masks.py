"""Masks drawn where views are made: in the loader workers."""

from typing import Any

from mmcv.transforms import BaseTransform

from sapiens2_mm.registry import TRANSFORMS


@TRANSFORMS.register_module()
class DrawTokenMasks(BaseTransform):
    """Choose the patches of the global views that the student sees.

    The masks are those of the model's ``mask_generator``, for its views and patches:
    ``SeekingTrainLoop`` calls ``follow`` before loader workers start. Without that
    nothing is drawn here, and the model draws its masks itself, between two steps.

    Required keys: ``img``, the list of views, and ``draw``, the numbers that tell this
    sample from all others of the run. Set key: ``ids_keep`` (V, n) int, ascending
    indices of the visible tokens of each global view.
    """

    def __init__(self) -> None:
        self.generator = None

    def follow(self, model: Any) -> None:
        """Draw masks for a ``Sapiens2Pretrain``."""
        self.generator = model.mask_generator
        self.num_views = model.num_global_views
        self.stride = model.backbone.stride

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        if self.generator is not None:
            height, width = results['img'][0].shape[:2]
            grid = height // self.stride, width // self.stride
            # The views of the sample have used the same numbers without the last.
            key = (*results['draw'], 1)
            results['ids_keep'] = self.generator.draw(key, self.num_views, grid)
        return results
