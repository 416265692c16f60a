"""Class and albedo of every visible pixel from its canonical attributes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .classes import CLASS_ID, REGIONS, Layer
from .garments import Outfit, garment_distances
from .mesh import wave_noise
from .palette import Palette
from .surface import Surface

IRIS_ANGLE = 29.0  # degrees about the gaze axis, seen from the eyeball's center
PUPIL_ANGLE = 12.0
BROW_INNER, BROW_LENGTH = -0.019, 0.050  # meters outwards from the eye center
_REGION_CLASS = np.array([CLASS_ID[name] for name in REGIONS], np.uint8)
_SOLID = {
    Layer.TEETH_UPPER: ('Upper_Teeth', (0.86, 0.83, 0.75)),
    Layer.TEETH_LOWER: ('Lower_Teeth', (0.84, 0.80, 0.72)),
    Layer.TONGUE: ('Tongue', (0.62, 0.25, 0.25)),
    Layer.GLASSES: ('Eyeglass', (0.03, 0.03, 0.04)),
}


@dataclass
class Fragments:
    """Attributes of P visible pixels, interpolated over the hit faces.

    Attributes:
        layer: (P,) :class:`Layer`; points: (P, 3) canonical, meters.
        regions: (P, 14) region weights; arm: (P,) meters along the arm.
        lips: (P,) lip mask in [0, 1]; jaw: (P,) meters that the jaw moves it.
    """

    layer: np.ndarray
    points: np.ndarray
    regions: np.ndarray
    arm: np.ndarray
    lips: np.ndarray
    jaw: np.ndarray


def brow_curve(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eyebrow in canonical meters relative to the eye center.

    Args:
        t: position in [0, 1] from the inner to the outer end.

    Returns:
        offset outwards, offset upwards, half thickness.
    """
    outwards = BROW_INNER + t * BROW_LENGTH
    upwards = 0.0195 + 0.0065 * np.sin(np.pi * (0.15 + 0.75 * t))
    return outwards, upwards, 0.0030 * (1 - 0.65 * t)


class Painter:
    """Paints one person.

    Args:
        surface: canonical landmarks.
        outfit, palette: what is worn and its colors.
        lip_split: meters of jaw motion between upper and lower lip.
    """

    def __init__(
        self, surface: Surface, outfit: Outfit, palette: Palette, lip_split: float
    ) -> None:
        self.surface = surface
        self.outfit = outfit
        self.palette = palette
        self.lip_split = lip_split

    def __call__(self, fragments: Fragments) -> tuple[np.ndarray, np.ndarray]:
        """Classes (P,) uint8 and albedo (P, 3) float32, linear in [0.01, 0.95]."""
        num = len(fragments.layer)
        self._label = np.zeros(num, np.uint8)
        self._albedo = np.zeros((num, 3), np.float32)
        painters = {
            Layer.SKIN: self._skin,
            Layer.CLOTH: self._cloth,
            Layer.SKIRT: self._skirt,
            Layer.HAIR: self._hair,
            Layer.CAP: self._cap,
            Layer.EYE_LEFT: self._eye,
            Layer.EYE_RIGHT: self._eye,
        }
        for layer in Layer:
            index = np.nonzero(fragments.layer == layer)[0]
            if not len(index):
                continue
            if layer in _SOLID:
                name, color = _SOLID[layer]
                self._set(index, CLASS_ID[name], np.array(color))
            else:
                painters[layer](index, fragments)
        return self._label, np.clip(self._albedo, 0.01, 0.95)

    def _set(
        self, index: np.ndarray, label: int | np.ndarray, albedo: np.ndarray
    ) -> None:
        self._label[index] = label
        self._albedo[index] = albedo

    def _skin(self, index: np.ndarray, f: Fragments) -> None:
        points = f.points[index]
        x, y, z = points.T
        eye = self.surface.eye
        mottle = (
            1 + 0.05 * wave_noise(points, 1, 30.0) + 0.03 * wave_noise(points, 2, 120.0)
        )
        blush = np.hypot((np.abs(x) - 0.035) / 0.018, (z - eye[2] + 0.035) / 0.018)
        blush = np.exp(-(blush**2)) * (y < eye[1] + 0.03)
        tone = self.palette.skin * mottle[:, None]
        tone *= 1 - blush[:, None] * np.array([0, 0.12, 0.10])
        self._set(index, _REGION_CLASS[f.regions[index].argmax(axis=1)], tone)

        is_lip = f.lips[index] > 0.5
        lip = index[is_lip]
        lower = f.jaw[lip] > self.lip_split
        shade = 1 + 0.06 * wave_noise(f.points[lip], 3, 200.0)
        self._set(
            lip,
            np.where(lower, CLASS_ID['Lower_Lip'], CLASS_ID['Upper_Lip']),
            self.palette.lips * shade[:, None],
        )
        t = (np.abs(x) - eye[0] - BROW_INNER) / BROW_LENGTH
        _, upwards, half = brow_curve(np.clip(t, 0, 1))
        brow = (t > 0) & (t < 1) & (np.abs(z - eye[2] - upwards) < half)
        brow &= y < eye[1] + 0.02
        self._albedo[index[brow]] = self.palette.hair * 0.8

    def _eye(self, index: np.ndarray, f: Fragments) -> None:
        sign = np.where(f.layer[index] == Layer.EYE_LEFT, 1, -1)
        offset = f.points[index] - self.surface.eye * np.stack(
            [sign, np.ones_like(sign), np.ones_like(sign)], axis=1
        )
        angle = np.degrees(
            np.arctan2(np.hypot(offset[:, 0], offset[:, 2]), -offset[:, 1])
        )[:, None]
        color = np.where(angle < IRIS_ANGLE, self.palette.iris, [0.85, 0.82, 0.80])
        color = np.where(angle < PUPIL_ANGLE, 0.02, color)
        self._set(index, CLASS_ID['Face_Neck'], color)

    def _print(self, points: np.ndarray) -> np.ndarray:
        """(P, 3) colors of the top's fabric."""
        x, _, z = points.T
        pattern = self.palette.pattern
        if pattern == 0:
            return np.broadcast_to(self.palette.top, points.shape)
        if pattern == 1:
            printed = np.sin(z * 90) > 0.2
        elif pattern == 2:
            printed = np.sin(z * 120) * np.sin(x * 120) > 0
        else:
            printed = wave_noise(points, 5, 40.0) > 0.5
        return np.where(printed[:, None], self.palette.top_print, self.palette.top)

    def _cloth(self, index: np.ndarray, f: Fragments) -> None:
        points, arm = f.points[index], f.arm[index]
        z = points[:, 2]
        worn = garment_distances(self.surface, self.outfit, points, arm)
        is_top = worn.upper > worn.lower
        label = np.where(is_top, CLASS_ID['Upper_Clothing'], CLASS_ID['Lower_Clothing'])
        color = np.where(is_top[:, None], self._print(points), self.palette.bottom)
        color = color * _grain(points)

        def over(
            mask: np.ndarray, classes: np.ndarray | int, paint: np.ndarray
        ) -> None:
            nonlocal label, color
            label = np.where(mask, classes, label)
            color = np.where(mask[:, None], paint, color)

        def sided(name: str) -> np.ndarray:
            left, right = CLASS_ID[f'Left_{name}'], CLASS_ID[f'Right_{name}']
            return np.where(points[:, 0] > 0, left, right)

        if self.outfit.belt:
            band = (np.abs(z - self.outfit.waist + 0.004) < 0.018) & (arm < 0)
            over(band, CLASS_ID['Apparel'], self.palette.belt)
        bare = worn.lower < 0
        over(bare & (worn.sock > 0), sided('Sock'), self.palette.sock)
        is_sole = (z < self.surface.floor + 0.022)[:, None]
        shoe = np.where(is_sole, self.palette.sole, self.palette.shoe)
        over(bare & (worn.shoe > 0), sided('Shoe'), shoe)
        self._set(index, label, color)

    def _skirt(self, index: np.ndarray, f: Fragments) -> None:
        color = self.palette.bottom * _grain(f.points[index])
        self._set(index, CLASS_ID['Lower_Clothing'], color)

    def _hair(self, index: np.ndarray, f: Fragments) -> None:
        strands = wave_noise(f.points[index] * np.array([1, 1, 0.15]), 9, 700.0)
        color = self.palette.hair * (1 + 0.35 * strands)[:, None]
        self._set(index, CLASS_ID['Hair'], color)

    def _cap(self, index: np.ndarray, f: Fragments) -> None:
        color = self.palette.cap * _grain(f.points[index])
        self._set(index, CLASS_ID['Apparel'], color)


def _grain(points: np.ndarray) -> np.ndarray:
    """(P, 1) fine brightness variation of fabric."""
    return 1 + 0.06 * wave_noise(points, 7, 900.0)[:, None]
