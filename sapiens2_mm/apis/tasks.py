"""What differs between the tasks at inference: samples in, results out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from mmengine.structures import BaseDataElement
from torch import nn

from .boxes import People
from .inputs import Picture
from .pipeline import inference_pipeline
from .results import DenseResult, PoseResult, Result, SegResult


@dataclass(frozen=True)
class Job:
    """A picture and what was asked of it.

    Args:
        picture: to predict.
        people: for pose.
        mask: (H, W) bool, for dense tasks; predictions are 0 outside.
    """

    picture: Picture
    people: People | None = None
    mask: np.ndarray | None = None


class Task:
    """Segmentation, and what the other tasks share.

    Args:
        model: with ``cfg`` and ``dataset_meta``.
    """

    name = 'seg'

    def __init__(self, model: nn.Module) -> None:
        self.meta = getattr(model, 'dataset_meta', {})
        self.pipeline = inference_pipeline(model.cfg)

    def samples(self, job: Job) -> Iterator[dict[str, Any]]:
        """Inputs of the network for one picture, made one by one."""
        picture = job.picture
        yield self.pipeline(dict(img=picture.image, img_path=picture.path))

    def result(self, job: Job, outputs: list[BaseDataElement]) -> Result:
        """The result of a picture from the outputs of its samples."""
        (output,) = outputs
        output = output.cpu()
        labels = output.pred_sem_seg.data[0].numpy()
        return SegResult(job.picture, output, labels)

    def set_meta(self, visualizer: Any, result: Result) -> None:
        """Tell a visualizer the names and colors of a result."""
        visualizer.dataset_meta = self.meta


class PoseTask(Task):
    name = 'pose'

    def samples(self, job: Job) -> Iterator[dict[str, Any]]:
        people = job.people
        for box, score in zip(people.boxes, people.scores, strict=True):
            yield self.pipeline(
                dict(
                    self.meta,
                    img=job.picture.image,
                    img_path=job.picture.path,
                    bbox=box[None],
                    bbox_score=score[None],
                )
            )

    def result(self, job: Job, outputs: list[BaseDataElement]) -> PoseResult:
        from mmpose.structures import merge_data_samples

        merged = merge_data_samples(outputs) if outputs else None
        num_keypoints = self.meta['num_keypoints']
        people, found = job.people, [output.pred_instances for output in outputs]
        return PoseResult(
            job.picture,
            merged,
            people.boxes,
            np.concatenate(
                [np.empty((0, num_keypoints, 2), np.float32)]
                + [instance.keypoints for instance in found]
            ),
            np.concatenate(
                [np.empty((0, num_keypoints), np.float32)]
                + [instance.keypoint_scores for instance in found]
            ),
            people.scores,
            people.source,
            people.skipped,
            people.image_id,
            self.meta,
        )

    def set_meta(self, visualizer: Any, result: PoseResult) -> None:
        visualizer.set_dataset_meta(result.metainfo)


class DenseTask(Task):
    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self.name = model.decode_head.field

    def samples(self, job: Job) -> Iterator[dict[str, Any]]:
        for data in super().samples(job):
            if job.mask is not None:
                mask = np.asarray(job.mask, bool)
                if mask.shape != job.picture.size:
                    raise ValueError(
                        f'mask of size {mask.shape} does not fit the picture '
                        f'{job.picture.path} of size {job.picture.size}'
                    )
                data['data_samples'].pred_mask = torch.from_numpy(mask)[None]
            yield data

    def result(self, job: Job, outputs: list[BaseDataElement]) -> DenseResult:
        (output,) = outputs
        output = output.cpu()
        maps = {
            key.removeprefix('pred_'): value.numpy()
            for key, value in output.items()
            if key.startswith('pred_')
        }
        return DenseResult(job.picture, output, maps)


def task_of(model: nn.Module) -> Task:
    """The task of a built model, by the host class that it extends."""
    kinds = {base.__name__ for base in type(model).__mro__}
    if 'BasePoseEstimator' in kinds:
        return PoseTask(model)
    return (Task if 'BaseSegmentor' in kinds else DenseTask)(model)
