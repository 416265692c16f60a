"""Colors of skin, hair, eyes and clothes (linear RGB reflectance).

Clothes must never be taken for skin, by people or by a network: colors near
the range of human skin tones, and muted colors of skin hue, are not used.
"""

from __future__ import annotations

import colorsys
from dataclasses import dataclass

import numpy as np

GAMMA = 2.2
_LIGHT_SKIN = np.array([0.72, 0.44, 0.31])
_DARK_SKIN = np.array([0.13, 0.062, 0.036])
_MELANIN = {'african': 0.85, 'asian': 0.3, 'caucasian': 0.08}
_HAIR = np.array(
    [[0.03, 0.025, 0.02], [0.10, 0.06, 0.035], [0.28, 0.18, 0.09], [0.45, 0.42, 0.40]]
)
_IRIS = np.array([[0.09, 0.045, 0.02], [0.18, 0.28, 0.38], [0.16, 0.25, 0.12]])

MIN_SKIN_DISTANCE = 0.25  # in gamma-coded RGB, to every skin tone
_SKIN_HUES = (0.94, 0.13)  # from pink over orange to yellow-brown, wraps at 1
_SKIN_SATURATION = (0.12, 0.8)


def skin_tone(melanin: np.ndarray | float) -> np.ndarray:
    """(..., 3) linear skin color for melanin in [0, 1] (light to dark)."""
    m = np.asarray(melanin, np.float64)[..., None]
    return np.exp(np.log(_LIGHT_SKIN) * (1 - m) + np.log(_DARK_SKIN) * m)


_SKIN_CODED = skin_tone(np.linspace(0, 1, 33)) ** (1 / GAMMA)


def skin_distance(color: np.ndarray) -> float:
    """Distance of a linear RGB color to the nearest skin tone, gamma-coded."""
    coded = np.asarray(color, np.float64) ** (1 / GAMMA)
    return float(np.linalg.norm(_SKIN_CODED - coded, axis=1).min())


def is_skin_like(color: np.ndarray) -> bool:
    """True if a linear RGB color could pass for skin under some light."""
    hue, saturation, _ = colorsys.rgb_to_hsv(*np.asarray(color) ** (1 / GAMMA))
    skin_hue = hue > _SKIN_HUES[0] or hue < _SKIN_HUES[1]
    muted = _SKIN_SATURATION[0] < saturation < _SKIN_SATURATION[1]
    near = skin_distance(color) < MIN_SKIN_DISTANCE
    return bool(skin_hue and muted) or near


def sample_cloth_color(rng: np.random.Generator) -> np.ndarray:
    """(3,) linear RGB, never skin-like."""
    while True:
        color = rng.uniform(0.05, 0.9, 3) ** 1.3
        if not is_skin_like(color):
            return color


@dataclass
class Palette:
    """Linear RGB colors of one person; ``pattern`` is the print of the top.

    ``pattern``: 0 plain, 1 stripes, 2 checks, 3 blobs.
    """

    skin: np.ndarray
    lips: np.ndarray
    hair: np.ndarray
    iris: np.ndarray
    top: np.ndarray
    top_print: np.ndarray
    bottom: np.ndarray
    sock: np.ndarray
    shoe: np.ndarray
    sole: np.ndarray
    belt: np.ndarray
    cap: np.ndarray
    pattern: int


def sample_palette(phenotype: dict[str, float], rng: np.random.Generator) -> Palette:
    """Draw colors that fit a person's ancestry (keys of ``sample_shape``)."""
    melanin = sum(phenotype[k] * v for k, v in _MELANIN.items())
    skin = skin_tone(np.clip(melanin + rng.normal(0, 0.1), 0, 1))
    return Palette(
        skin=skin,
        lips=skin * np.array([0.9, 0.55, 0.55]),
        hair=_HAIR[rng.choice(4, p=[0.4, 0.3, 0.2, 0.1])],
        iris=_IRIS[rng.choice(3, p=[0.7, 0.15, 0.15])],
        top=sample_cloth_color(rng),
        top_print=sample_cloth_color(rng),
        bottom=sample_cloth_color(rng),
        sock=sample_cloth_color(rng),
        shoe=sample_cloth_color(rng),
        sole=np.full(3, rng.choice([0.05, 0.85])),
        belt=sample_cloth_color(rng),
        cap=sample_cloth_color(rng),
        pattern=int(rng.integers(0, 4)),
    )
