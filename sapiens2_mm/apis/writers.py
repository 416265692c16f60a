"""Files of the results, one writer per task."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from sapiens2_mm.checkpoint.io.atomic import replacing
from sapiens2_mm.datasets.io.label_image import write_label_image
from sapiens2_mm.datasets.metainfo.keypoint_conversion import conversion_of
from sapiens2_mm.visualization import save_point_cloud

from .inference import Inferencer
from .keypoint_conversion import convert_keypoints
from .keypoint_files import coco_category, coco_results, openpose_picture
from .out_files import finite_or_none, write_json, write_npz, write_png
from .results import DenseResult, PoseResult, SegResult

SAVE_KINDS = ('json', 'png', 'npz', 'ply', 'coco')


class Writer:
    """Writes ``NAME.png`` (a drawing) and ``NAME.npz`` (the arrays) of a picture.

    Args:
        inferencer: that made the results.
        folder: of the files.
        save: of ``SAVE_KINDS``; those that the task does not have are left out.
    """

    kinds: tuple[str, ...] = ('json', 'png', 'npz')
    ends = dict(png=('.png',), npz=('.npz',), ply=('.ply',))
    draw_frames: dict[str, Any] = {}  # options of the visualizer in videos

    def __init__(
        self, inferencer: Inferencer, folder: Path, save: Collection[str]
    ) -> None:
        self.inferencer = inferencer
        self.folder = folder
        self.save = [kind for kind in self.kinds if kind in save]
        self.records: list[dict[str, Any]] = []
        self.videos: list[dict[str, Any]] = []

    @property
    def file_ends(self) -> list[str]:
        """What follows NAME in the files of one picture."""
        return [end for kind in self.save for end in self.ends.get(kind, ())]

    def header(self) -> dict[str, Any]:
        """What ``predictions.json`` says of all pictures."""
        return {}

    def write(self, result: Any, name: str, **draw: Any) -> dict[str, Any]:
        """Write the files of one picture; several threads may, in any order.

        Args:
            result: of the picture.
            name: of the files.
            draw: goes to ``Inferencer.draw``.

        Returns:
            The picture's record, for ``add``.
        """
        result = self.prepared(result)
        if 'png' in self.save:
            write_png(self.folder / f'{name}.png', self.inferencer.draw(result, **draw))
        if 'npz' in self.save:
            write_npz(self.folder / f'{name}.npz', **self.arrays(result))
        record = dict(image=result.picture.path, **self.record(result))
        record['files'] = [name + end for end in self.file_ends]
        return record | self.write_more(result, name)

    def add(self, record: dict[str, Any]) -> None:
        """Take the next picture's record into ``predictions.json``."""
        self.records.append(record)

    def prepared(self, result: Any) -> Any:
        """The result as it is written and drawn."""
        return result

    def record(self, result: Any) -> dict[str, Any]:
        """What is written of one picture or frame: its size and ``describe``."""
        height, width = result.picture.size
        record = dict(height=height, width=width, **self.describe(result))
        if lost := self.lost(self.arrays(result)):
            record['not_finite'] = f'{lost} numbers; they are null here'
        return record

    def describe(self, result: Any) -> dict[str, Any]:
        """What ``predictions.json`` says of one picture."""
        return {}

    def arrays(self, result: Any) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def lost(self, arrays: dict[str, np.ndarray]) -> int:
        """How many numbers are not finite."""
        return sum(v.size - np.count_nonzero(np.isfinite(v)) for v in arrays.values())

    def write_more(self, result: Any, name: str) -> dict[str, Any]:
        """Write other files of one picture; returns more of its record."""
        return {}

    def finish(self, **more: Any) -> None:
        """Write ``predictions.json``; ``more`` goes into it."""
        if self.videos:
            more['videos'] = self.videos
        if 'json' in self.save:
            path = self.folder / 'predictions.json'
            write_json(path, dict(self.header(), images=self.records, **more))


class PoseWriter(Writer):
    """Also ``coco.json``, a list of results in COCO's form (``x, y, score``), and
    ``coco_categories.json`` with the names and links.

    Args:
        inferencer: see ``Writer``.
        folder: see ``Writer``.
        save: see ``Writer``.
        keypoints: set to convert to, see ``convert_keypoints``. That of OpenPose also
            writes ``NAME_keypoints.json`` in OpenPose's form, COCO-WholeBody has its
            fields in ``coco.json``.
    """

    kinds = ('json', 'png', 'npz', 'coco')

    def __init__(
        self,
        inferencer: Inferencer,
        folder: Path,
        save: Collection[str],
        keypoints: str | None = None,
    ) -> None:
        super().__init__(inferencer, folder, save)
        self._coco: list[dict[str, Any]] = []
        self.meta = inferencer.task.meta
        self.target = keypoints
        self.fields: dict[str, range] = {}
        self.absent = np.zeros(self.meta['num_keypoints'], bool)
        if keypoints is not None:
            names = tuple(self.meta['keypoint_name2id'])
            self.conversion = conversion_of(names, keypoints)
            self.meta = self.conversion.target.metainfo
            self.fields = self.conversion.target.fields
            self.absent = self.conversion.absent
        if keypoints == 'openpose':
            self.ends = dict(self.ends, json=('_keypoints.json',))

    def header(self) -> dict[str, Any]:
        names = [self.meta['keypoint_id2name'][i] for i in range(len(self.absent))]
        header = dict(box_format='xyxy', keypoint_names=names)
        if self.target is not None:
            header['keypoint_set'] = self.target
            header['keypoints_from'] = [
                [point.name, point.kind, *point.sources]
                for point in self.conversion.points
            ]
        return header

    def prepared(self, result: PoseResult) -> PoseResult:
        return result if self.target is None else convert_keypoints(result, self.target)

    def describe(self, result: PoseResult) -> dict[str, Any]:
        instances = [
            dict(
                bbox=finite_or_none(box),
                bbox_score=finite_or_none(score),
                keypoints=finite_or_none(keypoints),
                keypoint_scores=finite_or_none(scores),
            )
            for box, score, keypoints, scores in _people(result)
        ]
        if result.track_ids is not None:
            for instance, number in zip(instances, result.track_ids, strict=True):
                instance['track_id'] = None if number < 0 else int(number)
        record = dict(boxes_from=result.boxes_from, instances=instances)
        if result.skipped_boxes:
            record['skipped_boxes'] = list(result.skipped_boxes)
        return record

    def arrays(self, result: PoseResult) -> dict[str, np.ndarray]:
        return dict(
            boxes=result.boxes,
            box_scores=result.box_scores,
            keypoints=result.keypoints,
            keypoint_scores=result.keypoint_scores,
        )

    def lost(self, arrays: dict[str, np.ndarray]) -> int:
        absent = arrays['keypoints'][:, self.absent]  # NaN, as is said in the header
        return super().lost(arrays) - absent.size

    def write_more(self, result: PoseResult, name: str) -> dict[str, Any]:
        if self.target == 'openpose' and 'json' in self.save:
            path = self.folder / f'{name}_keypoints.json'
            write_json(path, openpose_picture(result, self.fields, self.absent))
        image_id = name if result.image_id is None else result.image_id
        return dict(coco=coco_results(result, image_id, self.fields, self.absent))

    def add(self, record: dict[str, Any]) -> None:
        self._coco += record.pop('coco')
        super().add(record)

    def finish(self, **more: Any) -> None:
        super().finish(**more)
        if 'coco' in self.save:
            write_json(self.folder / 'coco.json', self._coco)
            category = coco_category(self.meta, self.fields)
            write_json(self.folder / 'coco_categories.json', [category])


class SegWriter(Writer):
    """Also ``NAME_labels.png``, class ids as pixel values, with the colors."""

    ends = dict(Writer.ends, png=('.png', '_labels.png'))
    draw_frames = dict(with_labels=False)  # the legend has another size in each frame

    def header(self) -> dict[str, Any]:
        return dict(classes=list(self.inferencer.task.meta['classes']))

    def describe(self, result: SegResult) -> dict[str, Any]:
        classes = self.inferencer.task.meta['classes']
        pixels = np.bincount(result.labels.ravel(), minlength=len(classes))
        return dict(
            pixels={n: int(c) for n, c in zip(classes, pixels, strict=True) if c}
        )

    def arrays(self, result: SegResult) -> dict[str, np.ndarray]:
        few = len(self.inferencer.task.meta['classes']) <= 256
        return dict(labels=result.labels.astype(np.uint8 if few else np.uint16))

    def write_more(self, result: SegResult, name: str) -> dict[str, Any]:
        if 'png' in self.save:
            with replacing(self.folder / f'{name}_labels.png') as path:
                palette = self.inferencer.task.meta.get('palette')
                write_label_image(path, result.labels, palette)
        return {}


class DenseWriter(Writer):
    def arrays(self, result: DenseResult) -> dict[str, np.ndarray]:
        return result.maps


class PointmapWriter(DenseWriter):
    """Also ``NAME.ply``, the colored points."""

    kinds = (*Writer.kinds, 'ply')

    def write_more(self, result: DenseResult, name: str) -> dict[str, Any]:
        if 'ply' in self.save:
            with replacing(self.folder / f'{name}.ply') as path:
                save_point_cloud(
                    path, result.maps['pointmap'], result.picture.image[..., ::-1]
                )
        return {}


def writer_class(inferencer: Inferencer) -> type[Writer]:
    """The writer of an inferencer's task."""
    special = dict(pose=PoseWriter, seg=SegWriter, pointmap=PointmapWriter)
    return special.get(inferencer.task.name, DenseWriter)


def _people(result: PoseResult) -> zip:
    return zip(
        result.boxes,
        result.box_scores,
        result.keypoints,
        result.keypoint_scores,
        strict=True,
    )
