"""Inference with a model of any task."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import cv2
import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.structures import BaseDataElement
from torch import nn

from sapiens2_mm.registry import VISUALIZERS

from .init_model import init_model
from .inputs import Failure
from .jobs import make_jobs
from .results import Result
from .tasks import Job, task_of
from .video.people import follow_people

_DTYPES = dict(fp32=torch.float32, bf16=torch.bfloat16, fp16=torch.float16)
_END = object()
T = TypeVar('T')


class Inferencer:
    """Predicts pictures with the model of any task.

    ``for result in Inferencer('sapiens2-1b_seg')('photos'): result.labels``

    Args:
        model: a config file or object, a name of ``list_models()``, or a model of
            ``init_model``, which takes none of the other arguments.
        checkpoint: see ``init_model``.
        device: where the model goes.
        dtype: of the weights: ``'bf16'``, ``'fp16'``, ``'fp32'`` or the torch.dtype.
            Results are float32.
        compile: compile the backbone on its first picture; takes a minute, pays off
            over many pictures of one network size.
        cfg_options: see ``init_model``.
        strict: see ``init_model``.

    Raises:
        CheckpointError: see ``init_model``.
        FileNotFoundError: see ``init_model``.
        ValueError: see ``init_model``; if the test pipeline has a step of training; for
            another dtype.
    """

    def __init__(
        self,
        model: str | Path | Config | nn.Module,
        checkpoint: str | Path | None = None,
        device: str | torch.device = 'cpu',
        dtype: str | torch.dtype | None = None,
        *,
        compile: bool = False,
        cfg_options: dict[str, Any] | None = None,
        strict: bool = True,
    ) -> None:
        if isinstance(dtype, str):
            if dtype not in _DTYPES:
                raise ValueError(f'dtype must be one of {[*_DTYPES]}, got {dtype!r}')
            dtype = _DTYPES[dtype]
        if not isinstance(model, nn.Module):
            model = init_model(
                model, checkpoint, device, cfg_options, dtype=dtype, strict=strict
            )
        self.model = model
        self.task = task_of(model)
        # by whether the keypoints drawn are those of the model, or converted
        self._visualizers: dict[bool, Any] = {}
        self._drawing = Lock()
        if compile:
            model.backbone.compile()

    def __call__(
        self,
        inputs: Any,
        *,
        boxes: Any = None,
        box_format: str = 'xyxy',
        whole_image: bool = False,
        masks: Any = None,
        batch_size: int = 1,
        channel_order: str = 'bgr',
        skip_errors: bool = False,
        track: bool | None = None,
        smooth: bool = False,
    ) -> Iterator[Result | Failure]:
        """Predict pictures and the frames of videos, in their order.

        Reading and preparing the next batch runs beside the forward pass. The result
        of a picture is a ``PoseResult``, ``SegResult`` or ``DenseResult``. That of a
        frame has a ``Frame`` as its ``picture``, with ``index`` and ``time``; only the
        frames at work are held.

        Args:
            inputs: a path, folder, pattern, array (H, W), (H, W, 3) or (H, W, 4) of 8
                or 16 bits, PIL image, video file, number of a camera, or a list or
                generator of these; see ``iter_pictures``. Alpha is dropped.
            boxes: of the people, for pose: (N, 4) for one picture, a list of these for
                several, the path of a COCO-style JSON (see ``BoxFile``), or a detector:
                ``MoveNetDetector``, ``MMDetDetector`` or a function from a (H, W, 3)
                BGR picture to xyxy. A fifth column is the score. A frame counts as a
                picture. A box that cannot be meant is left out and named in the result.
                None is ``MoveNetDetector`` unless ``whole_image``.
            box_format: of given boxes, ``'xyxy'`` or ``'xywh'``, in pixels.
            whole_image: take each whole picture as one person.
            masks: for dense tasks: (H, W) bool for one picture, or a list; predictions
                are 0 outside.
            batch_size: pictures, and people of them, per forward pass.
            channel_order: of color arrays, ``'bgr'`` or ``'rgb'``.
            skip_errors: yield a ``Failure`` for a picture that cannot be read, instead
                of raising.
            track: for pose, number the people of videos, see ``PeopleFollower``; None
                does so unless ``whole_image``, or with ``smooth``.
            smooth: for pose, smooth the keypoints of each person of a video.

        Raises:
            ImportError: see ``MoveNetDetector``.
            OSError: if a file does not exist.
            TypeError: for a tensor or anything else that is no picture.
            ValueError: for arguments that do not fit, or a picture that cannot be read
                (names it).
        """
        jobs = make_jobs(
            inputs,
            needs_boxes=self.task.name == 'pose',
            boxes=boxes,
            box_format=box_format,
            whole_image=whole_image,
            masks=masks,
            channel_order=channel_order,
            skip_errors=skip_errors,
        )
        found = infer([self], jobs, batch_size, skip_errors)
        if track is None:
            track = smooth or not whole_image
        found = follow_people(found, track, smooth)
        return (one if isinstance(one, Failure) else one[0] for one in found)

    @torch.no_grad()
    def forward(self, samples: list[dict[str, Any]]) -> list[BaseDataElement]:
        """Outputs of one batch of prepared samples."""
        return self.model.test_step(pseudo_collate(samples))

    def draw(self, result: Result, **options: Any) -> np.ndarray:
        """Picture of a result, by the config's visualizer; threads take turns.

        Args:
            result: of this inferencer.
            options: of the visualizer's ``add_datasample``, such as ``kpt_thr``.

        Returns:
            (H, any, 3) uint8 RGB.
        """
        image = cv2.cvtColor(result.picture.image, cv2.COLOR_BGR2RGB)
        if result.data_sample is None:
            return image
        with self._drawing:
            own = getattr(result, 'metainfo', self.task.meta) is self.task.meta
            if own not in self._visualizers:
                self._visualizers[own] = self._build_visualizer(own)
            visualizer = self._visualizers[own]
            self.task.set_meta(visualizer, result)
            drawn = visualizer.add_datasample(
                'picture', image, result.data_sample, draw_gt=False, **options
            )
            return visualizer.get_image() if drawn is None else drawn

    def _build_visualizer(self, own_keypoints: bool) -> Any:
        # not by build(), which registers each visualizer for ever
        cfg = dict(self.model.cfg.visualizer, name=f'{self.task.name} {id(self)}')
        cfg.pop('vis_backends', None)
        if not own_keypoints:
            for setting in ('keypoint_names', 'kpt_color', 'link_color'):
                cfg.pop(setting, None)
        return VISUALIZERS.get(cfg.pop('type'))(**cfg)


def infer(
    inferencers: Sequence[Inferencer],
    jobs: Iterable[Job | Failure],
    batch_size: int = 1,
    skip_errors: bool = False,
) -> Iterator[list[Result] | Failure]:
    """Predict pictures with several models, each picture decoded once.

    Args:
        inferencers: of any tasks.
        jobs: of ``make_jobs``.
        batch_size: pictures, and people of them, per forward pass.
        skip_errors: see ``Inferencer``.

    Yields:
        For each picture in order the results of all inferencers, or its failure.

    Raises:
        ValueError: if ``batch_size`` is under 1.
    """
    if batch_size < 1:
        raise ValueError(f'batch_size must be at least 1, got {batch_size}')
    return _infer(inferencers, jobs, batch_size, skip_errors)


def _infer(
    inferencers: Sequence[Inferencer],
    jobs: Iterable[Job | Failure],
    batch_size: int,
    skip_errors: bool,
) -> Iterator[list[Result] | Failure]:
    outputs: dict[tuple[int, int], list] = defaultdict(list)
    for number, part in _ahead(_batches(inferencers, jobs, batch_size, skip_errors)):
        if number is not None:
            batch = inferencers[number].forward([sample for _, sample in part])
            for (place, _), output in zip(part, batch, strict=True):
                outputs[place, number].append(output)
            continue
        for place, job in enumerate(part):  # all batches of these pictures are done
            if isinstance(job, Failure):
                yield job
            else:
                yield [
                    inferencer.task.result(job, outputs[place, number])
                    for number, inferencer in enumerate(inferencers)
                ]
        outputs.clear()


def _batches(
    inferencers: Sequence[Inferencer],
    jobs: Iterable[Job | Failure],
    batch_size: int,
    skip_errors: bool,
) -> Iterator[tuple[int | None, list]]:
    """Batches of ``batch_size`` pictures: (inferencer, [(place, sample), ...]) for each
    forward pass, then (None, jobs)."""
    jobs = iter(jobs)
    while part := list(islice(jobs, batch_size)):
        for number, inferencer in enumerate(inferencers):
            samples = _samples(inferencer, part, skip_errors)
            while batch := list(islice(samples, batch_size)):
                yield number, batch
        yield None, part


def _samples(
    inferencer: Inferencer, jobs: list[Job | Failure], skip_errors: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    for place, job in enumerate(jobs):
        if isinstance(job, Failure):
            continue
        try:
            for sample in inferencer.task.samples(job):
                yield place, sample
        except ValueError as err:
            if not skip_errors:
                raise
            jobs[place] = Failure(str(job.picture.path), str(err))


def _ahead(items: Iterable[T], count: int = 3) -> Iterator[T]:
    """``items``, made in a thread while the caller works on those before."""
    iterator = iter(items)
    with ThreadPoolExecutor(1) as thread:
        waiting = deque(thread.submit(next, iterator, _END) for _ in range(count))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(thread.submit(next, iterator, _END))
            yield item
