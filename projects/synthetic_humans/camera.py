"""Pinhole cameras that frame a posed body.

Camera frame: X right, Y down, Z forward, meters. Pixel centers lie at integer
coordinates, u = fx X / Z + cx, and the principal point is the image center
((W - 1) / 2, (H - 1) / 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .pose import rotation

# World (X left, Y back, Z up) to camera for a subject that faces the camera.
_FACING = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])


@dataclass(frozen=True)
class Camera:
    """Pinhole camera with square pixels.

    Attributes:
        focal, cx, cy: pixels; height, width: image size in pixels.
        rotation: (3, 3) and translation (3,), world to camera.
    """

    focal: float
    cx: float
    cy: float
    height: int
    width: int
    rotation: np.ndarray
    translation: np.ndarray

    def to_camera(self, points: np.ndarray) -> np.ndarray:
        """(N, 3) world to camera frame, in the type of ``points``."""
        moved = points @ self.rotation.T.astype(points.dtype)
        return moved + self.translation.astype(points.dtype)

    def project(self, points: np.ndarray) -> np.ndarray:
        """(N, 3) camera frame to (N, 2) pixels."""
        return points[:, :2] / points[:, 2:] * self.focal + [self.cx, self.cy]

    def unproject(
        self, cols: np.ndarray, rows: np.ndarray, depth: np.ndarray
    ) -> np.ndarray:
        """Pixels with depth (P,) to (P, 3) float32 points in the camera frame."""
        x = (cols - self.cx) / self.focal * depth
        y = (rows - self.cy) / self.focal * depth
        return np.stack([x, y, depth], axis=1).astype(np.float32)


def sample_camera(
    framed: np.ndarray,
    size: tuple[int, int],
    frontal: bool,
    rng: np.random.Generator,
) -> Camera:
    """Draw a view and place the framed part of the body in the image.

    Args:
        framed: (M, 3) world points that shall lie inside the image.
        size: (height, width) in pixels.
        frontal: keep the face towards the camera (yaw within 40 degrees).
        rng: source of randomness.
    """
    height, width = size
    yaw = float(rng.choice([rng.normal(0, 25), rng.uniform(-180, 180)], p=[0.8, 0.2]))
    if frontal:
        yaw = float(np.clip(rng.normal(0, 20), -40, 40))
    pitch, roll, fov = rng.normal(2, 7), rng.normal(0, 2), rng.uniform(25, 55)
    turn = rotation([0, 0, 1], roll) @ rotation([1, 0, 0], pitch) @ _FACING
    turn = turn @ rotation([0, 0, 1], yaw)
    focal = 0.5 * height / np.tan(np.radians(fov / 2))

    points = framed @ turn.T
    low, high = points.min(axis=0), points.max(axis=0)
    extent = high - low
    margin = rng.uniform(1.08, 1.5)
    distance = max(extent[1] / height, extent[0] / width) * focal * margin
    distance += extent[2] / 2
    shift = np.array([rng.normal(0, 0.04) * width, rng.normal(0, 0.03) * height])
    center = np.append(shift / focal * distance, distance)
    return Camera(
        focal=float(focal),
        cx=(width - 1) / 2,
        cy=(height - 1) / 2,
        height=height,
        width=width,
        rotation=turn,
        translation=center - (low + high) / 2,
    )
