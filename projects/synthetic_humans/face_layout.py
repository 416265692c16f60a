"""Where the face, eye and ear keypoints lie on the canonical head.

Canonical frame: X to the subject's left, Y back, Z up, meters. Most points are
given as (x, z) of a ray along +Y, as seen by a viewer who faces the person;
that viewer's left is the subject's right (negative X). Numbered midpoints
follow the layout's mirror pairs: in the direction left to right in the image,
1 and 2 are the quarter points and 3 to 6 the odd eighths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from .classes import Layer
from .paint import IRIS_ANGLE, PUPIL_ANGLE, brow_curve

if TYPE_CHECKING:
    from .keypoint_table import Hits, Layout

MIDPOINTS = {1: 0.25, 2: 0.75, 3: 0.125, 4: 0.375, 5: 0.625, 6: 0.875}
_SIDES = (('r', -1), ('l', 1))

# Ear box: u from the front (0) to the back (1), v from the bottom to the top.
_EAR = {
    'top_end_of_inferior_crus': (0.38, 0.70),
    'top_end_of_superior_crus': (0.55, 0.80),
    'start_of_antihelix': (0.62, 0.62),
    'end_of_antihelix': (0.52, 0.27),
    'midpoint_1_of_antihelix': (0.66, 0.52),
    'midpoint_1_of_inferior_crus': (0.50, 0.67),
    'midpoint_2_of_antihelix': (0.66, 0.43),
    'midpoint_3_of_antihelix': (0.61, 0.34),
    'point_1_of_inner_helix': (0.30, 0.82),
    'point_2_of_inner_helix': (0.42, 0.90),
    'point_3_of_inner_helix': (0.58, 0.92),
    'point_4_of_inner_helix': (0.73, 0.86),
    'point_5_of_inner_helix': (0.82, 0.73),
    'point_6_of_inner_helix': (0.84, 0.58),
    'point_7_of_inner_helix': (0.80, 0.43),
    'point_8_of_inner_helix': (0.70, 0.28),
    'highest_point_of_antitragus': (0.46, 0.24),
    'bottom_point_of_tragus': (0.28, 0.28),
    'protruding_point_of_tragus': (0.30, 0.38),
    'top_point_of_tragus': (0.25, 0.48),
    'start_point_of_crus_of_helix': (0.42, 0.48),
    'deepest_point_of_concha': (0.45, 0.38),
    'tip_of_ear_lobe': (0.35, 0.04),
    'midpoint_between_22_15': (0.55, 0.16),
    'bottom_connecting_point_of_ear_lobe': (0.15, 0.08),
    'top_connecting_point_of_helix': (0.15, 0.70),
}


def _front_hits(layout: Layout, x: np.ndarray, z: np.ndarray) -> Hits:
    """What a viewer from the front sees at the skin positions (x, z)."""
    origins = np.stack([x.ravel(), np.full(x.size, -0.6), z.ravel()], axis=1)
    return layout.shoot(origins, [0, 1, 0])


def add_midline(layout: Layout) -> None:
    """Nose bridge, nose tip and chin from the profile of the face."""
    eye = layout.surface.eye[2]
    z = np.linspace(eye - 0.13, eye + 0.05, 361)
    hits = _front_hits(layout, np.full_like(z, 1e-4), z)
    depth = layout.values(hits, layout.surface.canonical)[:, 1]

    def extreme(low: float, high: float, sign: int) -> float:
        inside = (z > low) & (z < high)
        return float(z[inside][np.argmin(sign * depth[inside])])

    tip = extreme(eye - 0.06, eye - 0.01, 1)
    base = extreme(tip - 0.03, tip - 0.006, -1) + 0.006  # above the deepest point
    root = eye + 0.004
    chin = extreme(eye - 0.14, eye - 0.095, 1)
    bridge = root + (tip - root) * 0.85
    layout.front('tip_of_nose', 0, tip)
    layout.front('bottom_center_of_nose', 0, base)
    layout.front('center_of_nose_root', 0, root)
    layout.front('center_of_glabella', 0, eye + 0.020)
    for i, t in enumerate((0.25, 0.5, 0.75), 1):
        layout.front(f'midpoint_{i}_of_nose_bridge', 0, root + (bridge - root) * t)
    layout.front('tip_of_nose_bridge', 0, bridge)
    layout.front('tip_of_chin', 0, chin)
    layout.nose_base, layout.chin = base, chin


def add_nose(layout: Layout) -> None:
    """Nose wings and nostrils, relative to the base of the nose."""
    base = layout.nose_base
    for side, sign in _SIDES:
        layout.front(f'{side}_outer_corner_of_nose', sign * 0.0165, base + 0.008)
        for corner, x, z in (
            ('inner', 0.004, 0.001),
            ('outer', 0.012, 0.003),
            ('upper', 0.008, 0.005),
        ):
            layout.front(f'{corner}_corner_of_{side}_nostril', sign * x, base + z)


def add_mouth(layout: Layout) -> None:
    """Lips: the borders of the same mask that labels the lips."""
    s = layout.surface
    x = np.linspace(-0.045, 0.045, 361)
    z = np.linspace(s.eye[2] - 0.11, s.eye[2] - 0.045, 261)
    grid_x, grid_z = np.meshgrid(x, z)
    hits = _front_hits(layout, grid_x, grid_z)
    mask = s.mask('lips', hits.blend(s.face_uv[hits.face]))
    lips = ((mask > 0.5) & (hits.face >= 0)).reshape(grid_x.shape)
    jaw = layout.values(hits, s.jaw).reshape(grid_x.shape)
    layout.lip_split = float(0.5 * (jaw[lips].max() + jaw[lips].min()))
    lower = lips & (jaw > layout.lip_split)
    upper = lips & ~lower
    columns = np.nonzero(lips.any(axis=0))[0]
    start, end = x[columns[0] + 3], x[columns[-1] - 3]

    def edge(mask: np.ndarray, t: float, top: bool) -> tuple[float, float]:
        """Upper or lower border of a lip at t in [0, 1], image left to right."""
        column = int(np.argmin(np.abs(x - (start + (end - start) * t))))
        rows = np.nonzero(mask[:, column])[0]
        if not len(rows):  # beyond the end of this lip: the corner of the mouth
            return x[column], z[int(np.nonzero(lips[:, column])[0].mean())]
        return x[column], z[rows[-1] if top else rows[0]]

    for name, t in (('r_outer', 0), ('l_outer', 1), ('r_inner', 0.06)) + (
        ('l_inner', 0.94),
    ):
        px, high = edge(lips, t, True)
        _, low = edge(lips, t, False)
        layout.front(f'{name}_corner_of_mouth', px, (high + low) / 2)
    for name, mask, outer_is_top in (('upper', upper, True), ('lower', lower, False)):
        for k, t in MIDPOINTS.items():
            outer, inner = f'midpoint_{k}_of_{name}_outer', f'midpoint_{k}_of_{name}'
            layout.front(f'{outer}_lip', *edge(mask, t, outer_is_top))
            layout.front(
                f'{inner}_inner_lip', *edge(mask, 0.06 + 0.88 * t, not outer_is_top)
            )
        layout.front(f'center_of_{name}_inner_lip', *edge(mask, 0.5, not outer_is_top))
    layout.front('center_of_cupid_bow', *edge(upper, 0.5, True))
    low_lip = edge(lower, 0.5, False)
    layout.front('center_of_lower_outer_lip', *low_lip)
    layout.front('center_of_labiomental_groove', 0, (low_lip[1] + layout.chin) / 2)


def add_brows(layout: Layout) -> None:
    """Eyebrows on the curve that is also painted."""
    eye = layout.surface.eye
    for side, sign in _SIDES:

        def add(name: str, t: float, level: float, side=side, sign=sign) -> None:
            outwards, upwards, half = brow_curve(np.float64(t))
            layout.front(
                f'{name}_of_{side}_eyebrow',
                sign * (eye[0] + outwards),
                eye[2] + upwards + level * half,
            )

        left_quarter, right_quarter = (0.75, 0.25) if side == 'r' else (0.25, 0.75)
        for name, level in (('upper', 1), ('lower', -1)):
            add(f'{name}_startpoint', 0.01, level)
            add(f'{name}_midpoint_1', 0.5, level)
            add(f'{name}_midpoint_2', left_quarter, level)
            add(f'{name}_midpoint_3', right_quarter, level)
        add('end', 0.99, 0)


def add_lids(layout: Layout) -> None:
    """Lash, eyelid and crease lines from the opening between the lids."""
    s = layout.surface
    eye = s.eye
    x = np.linspace(eye[0] - 0.020, eye[0] + 0.022, 169)
    z = np.linspace(eye[2] - 0.016, eye[2] + 0.016, 257)
    grid_x, grid_z = np.meshgrid(x, z)
    offset_x, offset_z = grid_x - eye[0], grid_z - eye[2]
    ball = eye[1] - np.sqrt(np.maximum(0, s.eye_radius**2 - offset_x**2 - offset_z**2))
    for side, sign in _SIDES:
        hits = _front_hits(layout, sign * grid_x, grid_z)
        skin = layout.values(hits, s.canonical)[:, 1].reshape(grid_x.shape)
        is_open = (skin > ball + 0.0005) & (np.hypot(offset_x, offset_z) < 0.0175)
        _, parts = cv2.connectedComponents(is_open.astype(np.uint8))
        is_open = parts == parts[len(z) // 2, len(x) // 2]
        columns = np.nonzero(is_open.any(axis=0))[0]
        inner, outer = x[columns[0]], x[columns[-1]]

        def lid(t, top, lift=0.0, opening=is_open, ends=(inner, outer), sign=sign):
            """Point at t in [0, 1] from the inner to the outer corner."""
            at = ends[0] + (ends[1] - ends[0]) * np.clip(t, 0.02, 0.98)
            column = int(np.argmin(np.abs(x - at)))
            rows = np.nonzero(opening[:, column])[0]
            rim = z[rows[-1]] + 0.0004 if top else z[rows[0]] - 0.0004
            return sign * x[column], rim + lift

        for name, top in (('upper', True), ('lower', False)):
            up = 1 if top else -1
            lines = [('lash', 0.0), ('eyelid', up * 0.0015)]
            if top:
                lines.append(('crease', 0.0045))
            ends = f'end_of_{name}'
            layout.front(f'{side}_inner_{ends}_lash_line', *lid(0.03, top))
            layout.front(f'{side}_outer_{ends}_lash_line', *lid(0.97, top))
            layout.front(
                f'{side}_outer_{ends}_eyelid_line', *lid(0.99, top, up * 0.0012)
            )
            for line, lift in lines:
                where = f'of_{name}_{line}_line'
                layout.front(f'{side}_centerpoint_{where}', *lid(0.5, top, lift))
                for k, t in MIDPOINTS.items():
                    t = t if side == 'l' else 1 - t  # image order to inner-outer
                    layout.front(f'{side}_midpoint_{k}_{where}', *lid(t, top, lift))


def add_eyes(layout: Layout) -> None:
    """Iris and pupil on the eyeball; clock positions as the viewer sees them."""
    for side, sign in _SIDES:
        layer = Layer.EYE_LEFT if sign > 0 else Layer.EYE_RIGHT
        center = layout.surface.eye * np.array([sign, 1, 1])

        def add(name: str, angle: float, clock: float, layer=layer, center=center):
            tilt, turn = np.radians(angle), np.radians(90 - clock * 30)
            ray = np.array(
                [
                    np.sin(tilt) * np.cos(turn),
                    -np.cos(tilt),
                    np.sin(tilt) * np.sin(turn),
                ]
            )
            layout.surface_point(name, center + ray * 0.05, -ray, layer)

        for part, angle in (('iris', IRIS_ANGLE), ('pupil', PUPIL_ANGLE)):
            add(f'{side}_center_of_{part}', 0, 0)
            border = f'{side}_border_of_{part}'
            for clock in (3, 6, 9, 12):
                add(f'{border}_{clock}', angle, clock)
            for k, clock in enumerate((1.5, 4.5, 7.5, 10.5), 1):
                add(f'{border}_midpoint_{k}', angle, clock)


def add_ears(layout: Layout) -> None:
    """Ear points, approximate: a fixed pattern in the box of the left ear.

    The right ear is its mirror image by the layout's swap pairs, which join
    points 2 and 8 of the inner helix crosswise.
    """
    s = layout.surface
    ear = s.canonical[np.unique(s.faces[s.ear_faces])]
    ear = ear[ear[:, 0] > 0]
    low, size = ear.min(axis=0), np.ptp(ear, axis=0)
    crossed = {
        'point_2_of_inner_helix': 'point_8_of_inner_helix',
        'point_8_of_inner_helix': 'point_2_of_inner_helix',
    }
    for name, (u, v) in _EAR.items():
        origin = [0.3, low[1] + size[1] * u, low[2] + size[2] * v]
        layout.surface_point(f'l_{name}', origin, [-1, 0, 0])
        layout.add_mirrored(f'r_{crossed.get(name, name)}', f'l_{name}')
