"""Random body poses with anatomical joint limits.

A bone's rotation is given in the world axes of the rest A-pose (X left, Y
back, Z up), so anatomical axes are simple: X bends the spine forward, Y leans
it to the side, Z twists it. Angles are degrees.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from scipy.spatial import cKDTree

from .body import BodyModel
from .classes import REGION_ID
from .mesh import VertexNormals
from .surface import Surface

_X, _Y, _Z = np.eye(3)


class BasePose(NamedTuple):
    """Mean angles of one kind of pose (degrees)."""

    abduction: float  # of the upper arm from the A-pose, + upwards
    abduction_std: float
    forward: float  # of the upper arm
    elbow: float
    hip: float  # flexion
    spread: float  # abduction of the hip
    knee: float


BASE_POSES = {
    'stand': BasePose(-28, 8, 0, 15, 2, 0, 5),
    'walk': BasePose(-30, 6, 20, 25, 18, 0, 18),
    'reach': BasePose(20, 30, 35, 35, 8, 4, 12),
    't_pose': BasePose(40, 12, 0, 10, 3, 6, 5),
    'sit': BasePose(-25, 12, 30, 50, 80, 8, 80),
    'raise': BasePose(85, 25, 0, 30, 5, 4, 8),
    'squat': BasePose(-15, 15, 45, 50, 70, 14, 90),
}
SEATED = ('sit', 'squat')


def rotation(axis: np.ndarray, degrees: float) -> np.ndarray:
    """(3, 3) rotation about an axis of any length."""
    axis = np.asarray(axis, np.float64)
    return cv2.Rodrigues(axis / np.linalg.norm(axis) * np.radians(degrees))[0]


class PoseSampler:
    """Draws poses and rejects those whose hands enter the trunk or the thighs."""

    def __init__(self, body: BodyModel, surface: Surface) -> None:
        self.body = body
        num = len(body.canonical.vertices)
        self._normals = VertexNormals(surface.skin_base_faces, num)
        skin = np.unique(surface.skin_base_faces)
        weights = body.region_weights[skin]

        def region(*names: str) -> np.ndarray:
            ids = [REGION_ID[name] for name in names]
            return skin[(weights[:, ids] > 0.9).any(axis=1)]

        self._solid = region('Torso', 'Left_Upper_Leg', 'Right_Upper_Leg')[::2]
        self._probe = region(
            *(f'{s}_{p}' for s in ('Left', 'Right') for p in ('Hand', 'Lower_Arm'))
        )[::4]

    def sample(self, rng: np.random.Generator) -> tuple[np.ndarray, str]:
        """Rotations (J, 4, 4) of all bones and the name of the base pose."""
        name = str(rng.choice(list(BASE_POSES)))
        base = BASE_POSES[name]
        draw = _Draw(self.body, rng)
        for k in range(5, 0, -1):
            draw.bend(f'spine0{k}', (1, 3, -6, 14), (0, 2.5, -6, 6), (0, 4, -9, 9))
        for bone in ('neck01', 'neck02', 'head'):
            draw.bend(bone, (-2, 5, -14, 14), (0, 3, -8, 8), (0, 9, -22, 22))
        phase = int(rng.choice([-1, 1]))
        for letter, sign in (('L', 1), ('R', -1)):
            swing = phase * sign if name == 'walk' else 0  # an arm, the other leg
            draw.arm(base, letter, sign, swing or 1)
            draw.hand(letter)
            draw.leg(base, letter, sign, -swing or 1)
        return draw.rotations, name

    def collides(self, vertices: np.ndarray) -> bool:
        """True if over 1 % of the hand and forearm lies inside trunk or thighs."""
        normals = self._normals(vertices)
        solid, probe = vertices[self._solid], vertices[self._probe]
        distance, nearest = cKDTree(solid).query(probe)
        outwards = normals[self._solid][nearest]
        inside = ((probe - solid[nearest]) * outwards).sum(axis=1) < -0.004
        return bool((inside & (distance < 0.12)).mean() > 0.01)


class _Draw:
    """Rotations under construction; each range is (mean, std, low, high)."""

    def __init__(self, body: BodyModel, rng: np.random.Generator) -> None:
        self.body = body
        self.rng = rng
        self.rotations = np.tile(np.eye(4), (len(body.bones), 1, 1))

    def angle(self, mean: float, std: float, low: float, high: float) -> float:
        return float(np.clip(self.rng.normal(mean, std), low, high))

    def turn(self, bone: str, matrix: np.ndarray) -> None:
        slot = self.rotations[self.body.bone_index[bone]]
        slot[:3, :3] = matrix @ slot[:3, :3]

    def bend(self, bone: str, forward: tuple, lean: tuple, twist: tuple) -> None:
        x, y, z = (self.angle(*limits) for limits in (forward, lean, twist))
        self.turn(bone, rotation(_X, x) @ rotation(_Y, y) @ rotation(_Z, z))

    def joints(self, letter: str, *bones: str) -> list[np.ndarray]:
        return [self.body.joint(f'{bone}.{letter}') for bone in bones]

    def arm(self, base: BasePose, letter: str, sign: int, swing: int) -> None:
        shoulder, elbow, wrist = self.joints(
            letter, 'upperarm01', 'lowerarm01', 'wrist'
        )
        upper, lower = elbow - shoulder, wrist - elbow
        abduct = self.angle(base.abduction, base.abduction_std, -42, 110)
        forward = self.angle(base.forward, 18, -35, 90) * swing
        girdle = rotation(_Y, -sign * max(0.0, abduct) * 0.12)
        self.turn(f'clavicle.{letter}', girdle)
        self.turn(f'shoulder01.{letter}', girdle)
        forward *= 1 if abduct < 20 else 0.3
        abduct *= 0.8 if abduct > 0 else 1  # the girdle does the rest
        self.turn(
            f'upperarm01.{letter}',
            rotation(_X, -forward) @ rotation(_Y, -sign * abduct),
        )
        self.turn(
            f'upperarm02.{letter}', rotation(upper, sign * self.angle(0, 15, -35, 35))
        )
        hinge = np.cross(upper, lower)  # the rest arm is slightly bent
        self.turn(
            f'lowerarm01.{letter}', rotation(hinge, self.angle(base.elbow, 20, 0, 130))
        )
        self.turn(
            f'lowerarm02.{letter}', rotation(lower, sign * self.angle(0, 25, -60, 60))
        )

    def hand(self, letter: str) -> None:
        wrist, index, middle, pinky, thumb2, thumb3 = self.joints(
            letter,
            *('wrist', 'finger2-1', 'finger3-1', 'finger5-1', 'finger1-2', 'finger1-3'),
        )
        along, across = middle - wrist, index - pinky
        palm = np.cross(along, across)
        palm /= np.linalg.norm(palm)
        if palm @ (thumb3 - wrist) < 0:  # the palm looks to the thumb's side
            palm = -palm
        hinge = np.cross(along, palm)  # + bends towards the palm
        self.turn(
            f'wrist.{letter}',
            rotation(hinge, self.angle(0, 12, -40, 40))
            @ rotation(palm, self.angle(0, 6, -15, 15)),
        )
        curl = self.angle(18, 18, 0, 70)
        for finger in range(2, 6):
            for k in range(1, 4):
                self.turn(
                    f'finger{finger}-{k}.{letter}',
                    rotation(hinge, self.angle(curl, 6, -5, 85)),
                )
        thumb_hinge = np.cross(thumb3 - thumb2, -across)
        for k in (2, 3):
            self.turn(
                f'finger1-{k}.{letter}',
                rotation(thumb_hinge, self.angle(8, 6, 0, 40)),
            )

    def leg(self, base: BasePose, letter: str, sign: int, swing: int) -> None:
        hip = self.angle(base.hip * swing, 8, -18, 100)
        knee = self.angle(base.knee if hip > 0 else 8, 8, 0, 120)
        spread = self.angle(base.spread - 3, 3, -8, 30)
        self.turn(
            f'upperleg01.{letter}',
            rotation(_Y, -sign * spread) @ rotation(_X, -hip),
        )
        self.turn(
            f'upperleg02.{letter}', rotation(_Z, sign * self.angle(4, 5, -15, 20))
        )
        self.turn(f'lowerleg01.{letter}', rotation(_X, knee))
        foot = self.angle((hip - knee) * 0.25, 6, -20, 25)
        self.turn(f'foot.{letter}', rotation(_X, foot))
