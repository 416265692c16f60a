"""Clothes, hair and caps as signed distances in canonical space.

Distances are in meters and positive inside the garment. They are evaluated at
mesh vertices (to cut and inflate the layers) and again at every pixel (to
label it), so that borders stay crisp at any resolution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .classes import REGION_ID, Layer
from .mesh import smoothstep, wave_noise
from .plan import Traits
from .surface import Surface

OVERLAP = 0.012  # meters of skin that stay below the rim of a garment


@dataclass
class Outfit:
    """Sizes of the garments in meters; heights are canonical Z.

    Attributes:
        sleeve: length from the shoulder; waist, hem: heights; sock, shoe:
            height above the ankle joint, None for none; skirt_hem: height of
            the skirt's hem, None for trousers; hair: ``short|bob|bald``.
    """

    sleeve: float
    waist: float
    crop: float
    hem: float
    neck_radius: float
    neck_drop: float
    sock: float | None
    shoe: float | None
    skirt_hem: float | None
    hair: str
    hair_height: float
    looseness: float
    belt: bool
    cap: bool
    glasses: bool


class GarmentDistances(NamedTuple):
    """Signed distances (N,) of the four garments."""

    upper: np.ndarray
    lower: np.ndarray
    sock: np.ndarray
    shoe: np.ndarray

    def cover(self) -> np.ndarray:
        """(N,) distance into the nearest garment."""
        return np.maximum.reduce(self)


def sample_outfit(
    surface: Surface, traits: Traits, seated: bool, rng: np.random.Generator
) -> Outfit:
    """Draw an outfit; torso and legs are always covered at least to shorts."""
    s = surface
    sleeve = rng.choice(
        [0, 0.06, 0.12, s.upper_arm_length - 0.05, s.upper_arm_length + 0.08]
        + [s.arm_length - 0.02]
    )
    waist = s.hip + rng.uniform(0.04, 0.12)
    hems = [s.hip - 0.18, s.knee + 0.04, s.knee - 0.15, s.ankle + 0.05, s.ankle + 0.02]
    if traits.feet in ('sock', 'shoe+sock'):
        hems = hems[:3]  # long trousers would hide the sock
    hem = rng.choice(hems)
    sock = rng.choice([0.12, 0.18, 0.25]) if 'sock' in traits.feet else None
    shoe = rng.choice([0.03, 0.06]) if 'shoe' in traits.feet else None
    skirt_length = rng.uniform(0.3, 0.75)
    wears_skirt = rng.random() < 0.2 and not seated
    return Outfit(
        sleeve=float(sleeve),
        waist=float(waist),
        crop=float(rng.choice([0, 0, 0, 0.06])),
        hem=float(hem),
        neck_radius=float(rng.uniform(0.06, 0.11)),
        neck_drop=float(rng.uniform(0, 0.1)),
        sock=sock,
        shoe=shoe,
        skirt_hem=float(waist - skirt_length) if wears_skirt else None,
        hair=str(rng.choice(['short', 'bob', 'bald'], p=[0.5, 0.4, 0.1])),
        hair_height=float(rng.uniform(0.008, 0.022)),
        looseness=float(rng.uniform(0, 0.012)),
        belt=traits.belt,
        cap=traits.cap,
        glasses=traits.glasses,
    )


def garment_distances(
    surface: Surface, outfit: Outfit, points: np.ndarray, arm: np.ndarray
) -> GarmentDistances:
    """Signed distances of all garments.

    Args:
        surface: landmarks of the canonical body.
        outfit: the sizes.
        points: (N, 3) canonical positions.
        arm: (N,) meters along the arm, negative off the arms.
    """
    x, y, z = points.T
    on_arm = arm > 0
    # Neck opening: a flattened ball around the neck, and a V on the front.
    neck = surface.neck + np.array([0, -0.03, 0.01])
    offset = (points - neck) * np.array([1, 0.7, 1])
    body = np.linalg.norm(offset, axis=1) - outfit.neck_radius
    vee = (neck[2] - 0.05 - z) - outfit.neck_drop + np.abs(x) * 1.6
    front = y < surface.neck[1] - 0.02
    body = np.where(front, np.minimum(body, np.maximum(vee, np.abs(x) - 0.07)), body)
    trunk = np.minimum(body, z - (outfit.waist + outfit.crop))
    sleeve = outfit.sleeve - arm
    upper = np.where(on_arm, np.minimum(sleeve, body), np.minimum(sleeve, trunk))

    hem = outfit.hem if outfit.skirt_hem is None else surface.hip - 0.12
    lower = np.where(on_arm, -0.1, np.minimum(outfit.waist - z, z - hem))

    def below(height: float | None) -> np.ndarray:
        if height is None:
            return np.full(len(z), -0.1)
        return np.where(on_arm, -0.1, surface.ankle + height - z)

    return GarmentDistances(upper, lower, below(outfit.sock), below(outfit.shoe))


def hair_distance(surface: Surface, outfit: Outfit, points: np.ndarray) -> np.ndarray:
    """(N,) signed distance inside the hair line, with a cut-out for the ears."""
    if outfit.hair == 'bald':
        return np.full(len(points), -1.0)
    origin = np.array([0, surface.eye[1] + 0.085, surface.eye[2]])  # above the ears
    x, y, z = (points - origin).T
    width = np.abs(x)
    line = {'short': -0.045, 'bob': -0.16}[outfit.hair]
    if outfit.hair == 'short':  # rises towards the temples
        line = line * (1 - smoothstep(0.02, -0.02, y))
    front = smoothstep(0.0, -0.075, y)
    inside = z - (line * (1 - front) + (0.058 - 0.15 * width) * front)
    temple = y - (-0.022 + 0.5 * np.maximum(0, -0.01 - z))
    inside = np.where(z < 0.03, np.minimum(inside, temple), inside)
    ear_y, ear_z = (surface.ear_center - origin)[1:]
    ear = np.hypot(y - ear_y, (z - ear_z) * 0.75) - 0.030
    return np.where(width > 0.045, np.minimum(inside, ear), inside)


def cap_distance(surface: Surface, points: np.ndarray) -> np.ndarray:
    """(N,) signed distance above the rim of a cap."""
    behind = points[:, 1] - surface.eye[1] - 0.085
    return points[:, 2] - surface.eye[2] - 0.045 + 0.2 * np.minimum(0, behind)


def dress(
    surface: Surface, outfit: Outfit, vertices: np.ndarray, noise_seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Inflate the garment layers and cut every layer to shape.

    Args:
        surface: the render mesh.
        outfit: what is worn.
        vertices: (N, 3) posed fine vertices, world frame.
        noise_seed: chooses folds and hair clumps.

    Returns:
        moved vertices (N, 3) float32 and keep values (N,) float32 in meters,
        negative where the layer is cut away.
    """
    s = surface
    points = s.canonical
    vertices = vertices.copy()
    normals = s.normals(vertices)
    keep = np.ones(len(vertices), np.float32)

    i = s.layer_vertices(Layer.SKIN)
    cover = garment_distances(s, outfit, points[i], s.arm[i]).cover()
    head = s.regions[i, REGION_ID['Face_Neck']] > 0.6
    keep[i] = np.where(head, 1.0, OVERLAP - cover)

    i = s.layer_vertices(Layer.CLOTH)
    worn = garment_distances(s, outfit, points[i], s.arm[i])
    folds = wave_noise(points[i] + vertices[i] * 0.3, noise_seed, 25.0)
    loose = outfit.looseness * smoothstep(0, 0.1, np.maximum(worn.upper, worn.lower))
    lift = 0.003 + loose * (1 + 0.6 * folds)
    lift += 0.004 * smoothstep(-0.004, 0.004, worn.sock)
    lift += 0.006 * smoothstep(-0.01, 0.01, worn.shoe)
    vertices[i] += normals[i] * lift[:, None]
    keep[i] = worn.cover()

    i = s.layer_vertices(Layer.SKIRT)
    vertices[i] += normals[i] * 0.004
    if outfit.skirt_hem is None:
        keep[i] = -1
    else:
        height = points[i, 2]
        keep[i] = np.minimum(height - outfit.skirt_hem, outfit.waist + 0.01 - height)

    i = s.layer_vertices(Layer.HAIR)
    keep[i] = hair_distance(s, outfit, points[i])
    clumps = 1 + 0.25 * wave_noise(points[i], noise_seed + 1, 60.0)
    lift = 0.003 + outfit.hair_height * smoothstep(0, 0.03, keep[i]) * clumps
    vertices[i] += normals[i] * lift[:, None]

    i = s.layer_vertices(Layer.CAP)
    vertices[i] += normals[i] * (outfit.hair_height * 1.3 + 0.012)
    keep[i] = cap_distance(s, points[i]) if outfit.cap else -1
    return vertices.astype(np.float32), keep
