"""What the inferencer yields."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mmengine.structures import BaseDataElement

from .inputs import Picture


@dataclass(frozen=True)
class Result:
    """What is common to the results of all tasks. Arrays are numpy's, on the CPU.

    Args:
        picture: that was predicted, with ``path`` and ``image``.
        data_sample: of the task's host, for its visualizers; None without a person.
    """

    picture: Picture
    data_sample: BaseDataElement | None


@dataclass(frozen=True)
class PoseResult(Result):
    """Keypoints of the people of a picture.

    Args:
        boxes: (N, 4) float32 xyxy in pixels of the picture, as used.
        keypoints: (N, K, 2) float32 (x, y) in pixels of the picture.
        keypoint_scores: (N, K) float32.
        box_scores: (N,) float32 of the detector; 1 for other boxes.
        boxes_from: ``'given'``, ``'whole image'``, the file's path or the
            name of the detector.
        skipped_boxes: boxes that were left out, and why.
        image_id: of the picture in the file of boxes.
        metainfo: names, links and colors of the keypoints, in mmpose's parsed form.
        track_ids: (N,) int64, in videos: who is who, see ``PeopleFollower``.
    """

    boxes: np.ndarray
    keypoints: np.ndarray
    keypoint_scores: np.ndarray
    box_scores: np.ndarray
    boxes_from: str
    skipped_boxes: tuple[str, ...] = ()
    image_id: int | float | str | None = None
    metainfo: dict[str, Any] = field(default_factory=dict)
    track_ids: np.ndarray | None = None

    @property
    def keypoint_names(self) -> tuple[str, ...]:
        """The K names, in the order of ``keypoints``."""
        names = self.metainfo['keypoint_id2name']
        return tuple(names[number] for number in range(len(names)))


@dataclass(frozen=True)
class SegResult(Result):
    """Classes of the pixels of a picture.

    Args:
        labels: (H, W) int64 class ids.
    """

    labels: np.ndarray


@dataclass(frozen=True)
class DenseResult(Result):
    """Maps of a picture.

    Args:
        maps: name (``'normal'``, ``'pointmap'``, ...) -> array; units and frames as of
            ``DenseDataSample``, float32, maps (C, H, W) of the picture's size.
    """

    maps: dict[str, np.ndarray]
