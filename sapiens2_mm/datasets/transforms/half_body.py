"""Half-body crops, with a clear message where there are no keypoints."""

from mmpose.datasets.transforms import RandomHalfBody

from sapiens2_mm.registry import TRANSFORMS


@TRANSFORMS.register_module()
class Sapiens2RandomHalfBody(RandomHalfBody):
    """mmpose's ``RandomHalfBody``; an error at inference instead of a ``KeyError``.

    The upper and lower body sets come from the ``type`` of each keypoint in the
    table. The defaults (at least 9 visible points, 2 upper or 3 lower, extent times
    1.5, probability 0.3, upper preferred by 0.7) are the official ones.
    """

    def transform(self, results: dict) -> dict:
        if results.get('keypoints') is None:
            raise ValueError(
                f'{type(self).__name__} needs annotated keypoints; it belongs to the '
                'training pipeline, remove this step from the test pipeline'
            )
        return super().transform(results)
