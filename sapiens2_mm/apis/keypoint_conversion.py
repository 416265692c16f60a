"""Results of a pose model with the keypoints of another set."""

from dataclasses import replace

from mmengine.structures import InstanceData

from sapiens2_mm.datasets.metainfo.keypoint_conversion import conversion_of

from .results import PoseResult


def convert_keypoints(result: PoseResult, target: str) -> PoseResult:
    """A result with the keypoints of another set, see ``KeypointConversion``.

    Args:
        result: of a pose model.
        target: ``'coco'`` (17 keypoints), ``'coco-wholebody'`` (133), ``'openpose'``
            (BODY_25, 70 of the face, 21 of each hand), ``'halpe26'`` or ``'smpl'`` (the
            24 joints, as far as keypoints tell).

    Returns:
        A new result; its ``metainfo`` is that of the set.

    Raises:
        TypeError: for the result of another task.
        ValueError: see ``KeypointConversion``.
    """
    if not isinstance(result, PoseResult):
        raise TypeError(
            'convert_keypoints: expected a PoseResult, one result of an Inferencer of '
            f'a pose model, got {type(result).__name__}; choose a model of task pose'
        )
    conversion = conversion_of(result.keypoint_names, target)
    keypoints, scores = conversion(result.keypoints, result.keypoint_scores)
    sample = result.data_sample
    if sample is not None:
        sample = sample.new()
        sample.pred_instances = InstanceData(
            bboxes=result.boxes, keypoints=keypoints, keypoint_scores=scores
        )
        if result.track_ids is not None:
            sample.pred_instances.track_ids = result.track_ids
    return replace(
        result,
        data_sample=sample,
        keypoints=keypoints,
        keypoint_scores=scores,
        metainfo=conversion.target.metainfo,
    )
