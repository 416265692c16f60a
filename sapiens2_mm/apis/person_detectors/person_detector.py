"""What all detectors of people share: which of the found boxes are kept."""

import numpy as np
import torch
from torchvision.ops import nms

from ..inputs import read_picture

_MIN_SIDE = 2  # pixels; a smaller box shows nothing


class PersonDetector:
    """Finds the boxes of people: ``Inferencer(...)('photos', boxes=detector)``.

    Args:
        score_thr: boxes of a lower score are left out.
        nms_thr: of two boxes that overlap by more than this IoU the better one is kept.
        max_people: the best boxes of a picture that are kept; None keeps all.

    Raises:
        ValueError: for a threshold outside 0..1 or ``max_people`` under 1.
    """

    name: str

    def __init__(
        self, score_thr: float, nms_thr: float, max_people: int | None
    ) -> None:
        for key, value in dict(score_thr=score_thr, nms_thr=nms_thr).items():
            if not 0 <= value <= 1:
                raise ValueError(f'{key} must be in 0..1, got {value}')
        if max_people is not None and max_people < 1:
            raise ValueError(f'max_people must be at least 1, got {max_people}')
        self.score_thr = score_thr
        self.nms_thr = nms_thr
        self.max_people = max_people

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """Boxes of the people of a picture, best first.

        Args:
            image: (H, W, 3) uint8, BGR, or another picture of ``read_picture``.

        Returns:
            (N, 5) float32: xyxy in pixels, inside the picture, and the score in 0..1.
        """
        image = read_picture(image).image
        boxes, scores = self.detect(image)
        height, width = image.shape[:2]
        boxes = boxes.clip(0, [width, height, width, height])
        sides = boxes[:, 2:] - boxes[:, :2]
        kept = (scores >= self.score_thr) & (sides >= _MIN_SIDE).all(axis=1)
        found = np.column_stack((boxes, scores)).astype(np.float32)[kept]
        tensor = torch.from_numpy(found)
        order = nms(tensor[:, :4], tensor[:, 4], self.nms_thr)[: self.max_people]
        return found[order.numpy()]

    def detect(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All candidates of a picture: (N, 4) boxes xyxy in pixels, (N,) scores."""
        raise NotImplementedError
