"""People by MoveNet, whose weights are part of this package."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Any

import cv2
import numpy as np
import torch

from .person_detector import PersonDetector

_WEIGHTS = Path(__file__).with_name('movenet_multipose.tflite')
_STRIDE = 32  # height and width of the input are multiples of it
# Longer sides of the input; the network is at its best with people of about 200 pixels.
_COARSE, _FINE = 256, 512
_SMALL = 0.6  # the largest people at the fine scale, as a part of the longer side
_PART = 0.65  # sides of the four overlapping parts of a crowded picture


class MoveNetDetector(PersonDetector):
    """The default: on the CPU, without a download.

    The network finds at most six people. It looks at the picture at two scales, and if
    it is crowded at its parts.

    Args:
        score_thr: see ``PersonDetector``.
        nms_thr: see ``PersonDetector``.
        max_people: see ``PersonDetector``.

    Raises:
        ImportError: without ai-edge-litert, which runs the network.
        ValueError: see ``PersonDetector``.

    Source:
        MoveNet MultiPose Lightning, float16, of Google (Apache-2.0),
        ``google/movenet`` on Kaggle Models, unchanged; its keypoints are not used.
    """

    name = 'MoveNet MultiPose'

    def __init__(
        self,
        *,
        score_thr: float = 0.2,
        nms_thr: float = 0.5,
        max_people: int | None = None,
    ) -> None:
        super().__init__(score_thr, nms_thr, max_people)
        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError as err:
            raise ImportError(
                'the default person detector needs ai-edge-litert; install '
                'sapiens2_mm[demo], or give boxes, another detector or whole_image'
            ) from err
        threads = torch.get_num_threads()
        # one for each scale: another size of input costs as much as a picture
        self._networks = {
            s: Interpreter(str(_WEIGHTS), num_threads=threads) for s in (_COARSE, _FINE)
        }
        self._in_use = Lock()  # they keep their tensors between the calls

    def detect(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = np.concatenate((self._at_scale(image, _COARSE), self._small(image)))
        return rows[:, :4], rows[:, 4]

    def _small(self, image: np.ndarray, splits: int = 2) -> np.ndarray:
        """(N, 5) small people; where all six places are taken, of the parts as well."""
        rows = self._at_scale(image, _FINE)
        sides = rows[:, 2:4] - rows[:, :2]
        found = [rows[(sides <= _SMALL * max(image.shape[:2])).all(axis=1)]]
        if splits and (rows[:, 4] >= self.score_thr).all():
            found += self._of_parts(image, splits - 1)
        return np.concatenate(found)

    def _of_parts(self, image: np.ndarray, splits: int) -> Iterator[np.ndarray]:
        size = np.array(image.shape[1::-1])
        part = np.ceil(_PART * size).astype(int)
        for start in product(*zip((0, 0), size - part, strict=True)):
            (left, top), (right, bottom) = start, start + part
            rows = self._small(image[top:bottom, left:right], splits)
            # without those that the borders of the part cut
            whole = (rows[:, :2] > 0.02 * part) | (np.array(start) == 0)
            whole &= (rows[:, 2:4] < 0.98 * part) | (start + part == size)
            rows[:, :4] += [*start, *start]
            yield rows[whole.all(axis=1)]

    def _at_scale(self, image: np.ndarray, long_side: int) -> np.ndarray:
        """(6, 5) boxes in pixels of the picture, and scores."""
        scale = long_side / max(image.shape[:2])
        height, width = (max(1, round(side * scale)) for side in image.shape[:2])
        interpolation = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        resized = cv2.resize(image, (width, height), interpolation=interpolation)
        padded = np.zeros((-height % _STRIDE + height, -width % _STRIDE + width, 3))
        padded[:height, :width] = resized[..., ::-1]
        with self._in_use:
            rows = _run(self._networks[long_side], padded[None])
        sides = np.array([*padded.shape[1::-1]] * 2)
        rows[:, :4] *= sides / scale
        return rows


def _run(network: Any, batch: np.ndarray) -> np.ndarray:
    """(6, 5) boxes as parts of the input, and scores."""
    (taken,) = network.get_input_details()
    if tuple(taken['shape']) != batch.shape:
        network.resize_tensor_input(taken['index'], batch.shape)
        network.allocate_tensors()
    network.set_tensor(taken['index'], batch.astype(taken['dtype']))
    network.invoke()
    (given,) = network.get_output_details()
    # 17 keypoints of (y, x, score), then top, left, bottom, right, score
    return network.get_tensor(given['index'])[0][:, [52, 51, 54, 53, 55]]
