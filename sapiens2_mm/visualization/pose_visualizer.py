"""Drawing of dense keypoints."""

from collections.abc import Sequence
from inspect import unwrap
from typing import Any

import cv2
import mmcv
import numpy as np
import torch
from mmengine.structures import InstanceData
from mmpose.structures import PoseDataSample
from mmpose.visualization import PoseLocalVisualizer

from sapiens2_mm.registry import VISUALIZERS

from .track_label import draw_number, track_color

# Extent of a group of keypoints divided by the radius of its points, so that the 238
# points of a face stay apart; other groups share one radius from the whole person.
_RADII_PER_EXTENT = {'face': 170.0, 'left_hand': 55.0, 'right_hand': 55.0}
_RADII_PER_PERSON = 180.0
_RADII_PER_LINK = 10.0  # short links (eyes, nose, toes) have small ends
_RADIUS_LIMITS = (0.7, 6.0)
_SHIFT = 4  # fractional bits of cv2's drawing coordinates


@VISUALIZERS.register_module()
class Sapiens2PoseVisualizer(PoseLocalVisualizer):
    """mmpose's visualizer with sizes that suit 308 keypoints.

    Links are drawn first, then points, then the thin boxes. The radius of a point
    follows the size of the person, for faces and hands the size of that part, and the
    length of the links at it, within 0.7 to 6 pixels. Keypoints below the threshold of
    ``add_datasample`` (0.3) are left out. Colors, links and groups come from the
    dataset; without colors all points are red, without links there are only points.

    Args:
        name: of the instance, as mmengine's visualizers have it.
        radius: of all points, in pixels; None for the automatic size.
        line_width: of all links, in pixels; None follows the radius.
        keypoint_names: draw these keypoints only; None draws all.
        kpt_color: name of one color, or an RGB color for each keypoint; None takes
            the dataset's.
        link_color: the same for links.
        **kwargs: arguments of mmpose's ``PoseLocalVisualizer``.

    Raises:
        ValueError: when the dataset is set, if the numbers of colors and of keypoints
            or links differ, or a name is not in its metainfo; when drawing, if a sample
            has another number of keypoints.
        TypeError: if ``keypoint_names`` is one text.
    """

    def __init__(
        self,
        name: str = 'visualizer',
        *,
        radius: float | None = None,
        line_width: float | None = None,
        keypoint_names: Sequence[str] | None = None,
        kpt_color: Any = None,
        link_color: Any = None,
        **kwargs: Any,
    ) -> None:
        self._own_colors = (kpt_color, link_color)
        if isinstance(keypoint_names, str):
            raise TypeError(
                f'keypoint_names must be a list of names, got the text '
                f'{keypoint_names!r}; write [{keypoint_names!r}]'
            )
        self.keypoint_names = keypoint_names
        super().__init__(
            name,
            radius=radius,
            line_width=line_width,
            kpt_color=kpt_color,
            link_color=link_color,
            **kwargs,
        )

    @property
    def dataset_meta(self) -> dict:
        return self._dataset_meta

    @dataset_meta.setter
    def dataset_meta(self, meta: dict | None) -> None:
        meta = dict(meta or {})
        unknown = {*(self.keypoint_names or ())} - {*meta.get('keypoint_name2id', ())}
        if meta and unknown:
            raise ValueError(
                f'keypoint_names {sorted(unknown)} are not in the metainfo '
                f'{meta.get("dataset_name")}'
            )
        self._dataset_meta = meta
        self.bbox_color = meta.get('bbox_color', self.bbox_color)
        self.skeleton = meta.get('skeleton_links', self.skeleton)
        for own, name, colors, count, what in zip(
            self._own_colors,
            ('kpt_color', 'link_color'),
            ('keypoint_colors', 'skeleton_link_colors'),
            ('num_keypoints', 'num_skeleton_links'),
            ('keypoints', 'links'),
            strict=True,
        ):
            color = meta.get(colors, getattr(self, name)) if own is None else own
            if count in meta:
                _colors(color, meta[count], what)
            setattr(self, name, color)

    def set_dataset_meta(
        self, dataset_meta: dict | None, skeleton_style: str = 'mmpose'
    ) -> None:
        """Set the keypoint metainfo; the same as assigning ``dataset_meta``.

        ``skeleton_style`` is what mmpose's inferencers pass. OpenPose's style is one
        of COCO's keypoints; links and colors of the metainfo are drawn in either.
        """
        self.dataset_meta = dataset_meta

    def add_datasample(
        self,
        name: str,
        image: np.ndarray,
        data_sample: PoseDataSample,
        draw_gt: bool = True,
        draw_pred: bool = True,
        draw_heatmap: bool = False,
        draw_bbox: bool = True,
        **kwargs: Any,
    ) -> np.ndarray:
        """Draw one image; as in mmpose, but with boxes by default.

        With annotation and prediction the picture has twice the width: annotation
        left, prediction right. Keypoints are in pixels of ``image``. On a crop, a
        picture of the sample's ``input_size``, the ``transformed_keypoints`` of the
        annotation are drawn, without boxes and predictions.

        Args:
            name: of the picture.
            image: (H, W, 3) uint8, RGB.
            data_sample: with ``gt_instances`` and ``pred_instances``.
            draw_gt: draw the annotation.
            draw_pred: draw the prediction.
            draw_heatmap: add the heatmaps below, if the sample has them.
            draw_bbox: draw the boxes.
            **kwargs: ``kpt_thr``, ``show_kpt_idx``, ``skeleton_style``, ``show``,
                ``wait_time``, ``out_file``, ``step`` of mmpose's method.

        Returns:
            The picture, RGB uint8.
        """
        truth = data_sample.get('gt_instances', {})
        width_height = data_sample.metainfo.get('input_size', ())
        on_crop = tuple(width_height) == image.shape[1::-1]
        if on_crop and 'transformed_keypoints' in truth:
            data_sample = PoseDataSample(
                gt_instances=InstanceData(
                    keypoints=truth.transformed_keypoints,
                    keypoints_visible=truth.keypoints_visible,
                )
            )
        # mmpose lets the main process draw only; here every process writes the pictures
        # of its own samples, and the backends keep to the main process by themselves.
        draw = unwrap(PoseLocalVisualizer.add_datasample)
        return draw(
            self,
            name,
            image,
            data_sample,
            draw_gt=draw_gt,
            draw_pred=draw_pred,
            draw_heatmap=draw_heatmap,
            draw_bbox=draw_bbox,
            **kwargs,
        )

    def _draw_instances_bbox(
        self, image: np.ndarray, instances: InstanceData
    ) -> np.ndarray:
        boxes = _to_numpy(instances.get('bboxes', np.zeros((0, 4))))
        ids = instances.get('track_ids', np.full(len(boxes), -1))
        width = max(1, round(max(image.shape[:2]) / 500))
        for box, number in zip(boxes, ids, strict=True):
            if not np.isfinite(box).all():
                continue
            start, end = box.round().astype(int).reshape(2, 2).tolist()
            color = _rgb(self.bbox_color) if number < 0 else track_color(number)
            cv2.rectangle(image, start, end, color, width, cv2.LINE_AA)
            if number >= 0:
                draw_number(image, number, start, color)
        return image

    def _draw_instances_kpts(
        self,
        image: np.ndarray,
        instances: InstanceData,
        kpt_thr: float = 0.3,
        show_kpt_idx: bool = False,
        skeleton_style: str = 'mmpose',
    ) -> np.ndarray:
        image = np.ascontiguousarray(image)
        if 'keypoints' not in instances:
            return image
        keypoints = _to_numpy(instances.keypoints)[..., :2]
        expected = self.dataset_meta.get('num_keypoints', keypoints.shape[1])
        if keypoints.shape[1] != expected:
            raise ValueError(
                f'{keypoints.shape[1]} keypoints to draw, the metainfo has {expected}; '
                'set dataset_meta to the metainfo of these keypoints'
            )
        colors = _colors(self.kpt_color, keypoints.shape[1], 'keypoints')
        scores = instances.get('keypoint_scores', instances.get('keypoints_visible'))
        scores = np.ones(keypoints.shape[:2]) if scores is None else _to_numpy(scores)
        scores = scores[..., 0] if scores.ndim == 3 else scores  # 1 is a weight
        shown = (scores >= kpt_thr) & np.isfinite(keypoints).all(axis=-1)
        shown &= self._wanted(keypoints.shape[1])
        for person, visible in zip(keypoints, shown, strict=True):
            radii = self._radii(person, visible)
            self._draw_links(image, person, visible, radii)
            self._draw_points(image, person, visible, radii, colors, show_kpt_idx)
        return image

    def _wanted(self, num_keypoints: int) -> np.ndarray:
        """(K,) bool: keypoints that ``keypoint_names`` leaves in."""
        if self.keypoint_names is None:
            return np.ones(num_keypoints, dtype=bool)
        if not self.dataset_meta:
            raise ValueError('keypoint_names needs the keypoint metainfo dataset_meta')
        ids = [self.dataset_meta['keypoint_name2id'][n] for n in self.keypoint_names]
        return np.isin(np.arange(num_keypoints), ids)

    def _radii(self, person: np.ndarray, visible: np.ndarray) -> np.ndarray:
        """(K,) radius of each point in pixels."""
        if self.radius is not None:
            return np.full(len(person), float(self.radius))
        radii = np.full(len(person), _extent(person[visible]) / _RADII_PER_PERSON)
        for name, ids in self.dataset_meta.get('keypoint_groups', {}).items():
            if name in _RADII_PER_EXTENT:
                part = person[ids][visible[ids]]
                radii[ids] = np.minimum(
                    _extent(part) / _RADII_PER_EXTENT[name], radii[ids]
                )
        for start, end in [] if self.skeleton is None else self.skeleton:
            if visible[start] and visible[end]:
                length = float(np.linalg.norm(person[start] - person[end]))
                for index in (start, end):
                    radii[index] = min(radii[index], length / _RADII_PER_LINK)
        return radii.clip(*_RADIUS_LIMITS)

    def _draw_links(
        self,
        image: np.ndarray,
        person: np.ndarray,
        visible: np.ndarray,
        radii: np.ndarray,
    ) -> None:
        links = [] if self.skeleton is None else self.skeleton
        colors = _colors(self.link_color, len(links), 'links')
        for (start, end), color in zip(links, colors, strict=True):
            if visible[start] and visible[end]:
                width = self.line_width or min(radii[start], radii[end])
                cv2.line(
                    image,
                    _fixed_point(person[start]),
                    _fixed_point(person[end]),
                    color,
                    max(1, round(width)),
                    cv2.LINE_AA,
                    _SHIFT,
                )

    def _draw_points(
        self,
        image: np.ndarray,
        person: np.ndarray,
        visible: np.ndarray,
        radii: np.ndarray,
        colors: list[tuple[int, int, int]],
        show_kpt_idx: bool,
    ) -> None:
        for index in np.flatnonzero(visible):
            center = _fixed_point(person[index])
            radius = round(radii[index] * (1 << _SHIFT))
            cv2.circle(image, center, radius, colors[index], -1, cv2.LINE_AA, _SHIFT)
            if show_kpt_idx:
                place = np.rint(person[index] + radii[index]).astype(int).tolist()
                font = cv2.FONT_HERSHEY_SIMPLEX
                cv2.putText(image, str(index), place, font, 0.3, colors[index])


def _extent(points: np.ndarray) -> float:
    """Longer side of the box around (N, 2) points; 0 without points."""
    return float(np.ptp(points, axis=0).max()) if len(points) else 0.0


def _fixed_point(point: np.ndarray) -> tuple[int, int]:
    # Far outside the image cv2 would overflow its 32-bit fixed-point coordinates.
    x, y = np.rint(point.clip(-1e5, 1e5) * (1 << _SHIFT)).astype(int)
    return int(x), int(y)


def _rgb(color: Any) -> tuple[int, int, int]:
    if color is None or isinstance(color, str):
        return mmcv.color_val(color or 'red')[::-1]
    return tuple(int(channel) for channel in color)


def _colors(colors: Any, count: int, what: str) -> list[tuple[int, int, int]]:
    """One color for each of ``count`` things, from one color or a list."""
    if colors is None or isinstance(colors, str):
        return [_rgb(colors)] * count
    if len(colors) != count:
        raise ValueError(
            f'{len(colors)} colors for {count} {what}; set dataset_meta to the '
            'metainfo of these keypoints'
        )
    return [_rgb(color) for color in colors]


def _to_numpy(values: Any) -> np.ndarray:
    return values.cpu().numpy() if isinstance(values, torch.Tensor) else values
