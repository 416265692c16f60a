"""Who is who from frame to frame, and calmer keypoints."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from ..inputs import Failure
from ..results import PoseResult, Result
from .one_euro import OneEuroFilter
from .reader import Frame, Video

_MEMORY = 1.0  # seconds after which a lost person is forgotten
_SURE = 0.2  # score of a box that can be of somebody new, as detectors find by default


class PeopleFollower:
    """Gives the people of a video their numbers and smooths their keypoints.

    The numbers are those of ByteTrack (package ``trackers``) on the boxes: from 0 in
    the order of appearance, -1 in the first frame that shows a person. Boxes with a
    score under 0.2 belong to somebody seen before or to nobody. Who is not found for a
    second is forgotten and gets a new number.

    Args:
        video: whose frames follow.
        smooth: filter the keypoints of each person (``OneEuroFilter``), with the speed
            in sizes of its box per second. Points under the threshold stay as they are.
        keypoint_thr: of the keypoint scores, for ``smooth``.

    Source: Zhang et al., "ByteTrack: Multi-Object Tracking by Associating Every
    Detection Box", ECCV 2022.
    """

    def __init__(
        self, video: Video, smooth: bool = False, keypoint_thr: float = 0.3
    ) -> None:
        try:
            from trackers import ByteTrackTracker
        except ImportError as err:
            raise ImportError(
                'following people needs trackers; install sapiens2_mm[video], or give '
                'track=False (--no-track)'
            ) from err
        self.video = video
        self.smooth = smooth
        self.keypoint_thr = keypoint_thr
        self._tracker = ByteTrackTracker(
            lost_track_buffer=round(30 * _MEMORY),  # counted at 30 frames per second
            frame_rate=video.rate,
            minimum_consecutive_frames=1,
            track_activation_threshold=_SURE,
            high_conf_det_threshold=_SURE,
        )
        self._filters: dict[int, tuple[OneEuroFilter, float]] = {}

    def __call__(self, result: PoseResult) -> PoseResult:
        """The result of the next frame with ``track_ids``."""
        time = result.picture.time
        ids = self._identify(result, time)
        keypoints = result.keypoints
        if self.smooth:
            keypoints = self._smoothed(result, ids, time)
        if result.data_sample is not None:
            found = result.data_sample.pred_instances
            found.keypoints, found.track_ids = keypoints, ids
        return replace(result, track_ids=ids, keypoints=keypoints)

    def _identify(self, result: PoseResult, time: float) -> np.ndarray:
        from supervision import Detections

        ids = np.full(len(result.boxes), -1)
        found = Detections(
            result.boxes,
            confidence=result.box_scores,
            data=dict(place=np.arange(len(ids))),
        )
        tracked = self._tracker.update(found, timestamp=time)
        if len(tracked):
            ids[tracked.data['place']] = tracked.tracker_id
        return ids

    def _smoothed(self, result: PoseResult, ids: np.ndarray, time: float) -> np.ndarray:
        self._filters = {
            number: (one, seen)
            for number, (one, seen) in self._filters.items()
            if time - seen <= _MEMORY
        }
        keypoints = result.keypoints.copy()
        for place in np.flatnonzero(ids >= 0):
            one, _ = self._filters.get(ids[place], (OneEuroFilter(), time))
            self._filters[ids[place]] = one, time
            box = result.boxes[place]
            keypoints[place] = one(
                keypoints[place],
                time,
                result.keypoint_scores[place] >= self.keypoint_thr,
                scale=float(np.linalg.norm(box[2:] - box[:2])),
            )
        return keypoints


def follow_people(
    found: Iterable[list[Result] | Failure], track: bool, smooth: bool = False
) -> Iterator[list[Result] | Failure]:
    """Results of ``infer``, those of poses in videos followed from frame to frame.

    Args:
        found: results of all models for each picture.
        track: False leaves them as they are.
        smooth: see ``PeopleFollower``.

    Raises:
        ImportError: at the first such frame, without the package ``trackers``.
        ValueError: for ``smooth`` without ``track``.
    """
    if smooth and not track:
        raise ValueError('smooth=True needs track=True: each person is smoothed alone')
    return _follow_people(found, smooth) if track else iter(found)


def _follow_people(
    found: Iterable[list[Result] | Failure], smooth: bool
) -> Iterator[list[Result] | Failure]:
    followers: dict[int, PeopleFollower] = {}
    for item in found:
        for place, result in [] if isinstance(item, Failure) else enumerate(item):
            if isinstance(result, PoseResult) and isinstance(result.picture, Frame):
                video = result.picture.video
                if place not in followers or followers[place].video is not video:
                    followers[place] = PeopleFollower(video, smooth)
                item[place] = followers[place](result)
        yield item
