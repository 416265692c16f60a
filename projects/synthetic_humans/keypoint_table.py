"""Build ``keypoint_table.json``: the 308 keypoints as points of the body.

A keypoint is either a weighted sum of vertices of MakeHuman's base mesh or
the head or tail of a bone, so it follows every pose and shape. The layout is
found once in canonical space (X left, Y back, Z up, meters) by shooting rays
at the smooth skin. Run ``python -m projects.synthetic_humans.keypoint_table``
to rebuild the file; names and their order are kept from it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from .body import BodyModel
from .classes import Layer
from .face_layout import (
    add_brows,
    add_ears,
    add_eyes,
    add_lids,
    add_midline,
    add_mouth,
    add_nose,
)
from .keypoint_names import TABLE_PATH, keypoint_names
from .raycast import Caster
from .surface import Surface

_ABOUT = (
    'Sapiens2 308-keypoint layout on the MakeHuman base mesh. Either vertices and '
    'weights (sum 1) or a bone of the makehuman rig and its end. lip_split: metres '
    'of jawOpen motion between upper and lower lip. Made by keypoint_table.py.'
)
_JOINTS = {
    'shoulder': 'upperarm01',
    'elbow': 'lowerarm01',
    'wrist': 'wrist',
    'hip': 'upperleg01',
    'knee': 'lowerleg01',
    'ankle': 'foot',
}
_FINGERS = ('thumb', 'forefinger', 'middle_finger', 'ring_finger', 'pinky_finger')


class Hits(NamedTuple):
    """Face ids (R,), -1 for none, and barycentric weights (R, 3) of rays."""

    face: np.ndarray
    weights: np.ndarray

    def blend(self, corners: np.ndarray) -> np.ndarray:
        """Interpolate corner values (R, 3, ...); 0 where nothing was hit."""
        shape = self.weights.shape + (1,) * (corners.ndim - 2)
        return (corners * self.weights.reshape(shape)).sum(axis=1)


class Layout:
    """Keypoints under construction, and rays to find them.

    Attributes:
        surface: the canonical render mesh.
        entries: name -> JSON entry without id and name.
        lip_split: meters of jaw motion between the lips, set by ``add_mouth``.
        nose_base, chin: canonical heights, set by ``add_midline``.
    """

    def __init__(self, surface: Surface) -> None:
        self.surface = surface
        self.entries: dict[str, dict] = {}
        self.lip_split = self.nose_base = self.chin = float('nan')
        self._probes: dict[Layer, tuple[np.ndarray, Caster]] = {}

    def shoot(
        self, origins: ArrayLike, directions: ArrayLike, layer: Layer = Layer.SKIN
    ) -> Hits:
        """First hits of rays (R, 3) on one layer."""
        if layer not in self._probes:
            ids = np.nonzero(self.surface.face_layer == layer)[0]
            caster = Caster(self.surface.canonical, self.surface.faces[ids])
            self._probes[layer] = ids, caster
        ids, caster = self._probes[layer]
        face, weights = caster.shoot(origins, np.asarray(directions, np.float64))
        return Hits(np.where(face >= 0, ids[face], -1), weights)

    def values(self, hits: Hits, attribute: np.ndarray) -> np.ndarray:
        """Interpolate a vertex attribute (N, ...) at hits; 0 where none."""
        return hits.blend(attribute[self.surface.faces[hits.face]])

    def surface_point(
        self,
        name: str,
        origin: ArrayLike,
        direction: ArrayLike,
        layer: Layer = Layer.SKIN,
    ) -> None:
        """Add the point where a ray meets a layer.

        Raises:
            ValueError: if the ray misses it.
        """
        hits = self.shoot(np.asarray(origin)[None], direction, layer)
        if hits.face[0] < 0:
            raise ValueError(
                f'keypoint {name}: expected the ray from {np.round(origin, 4)} along '
                f'{np.round(direction, 2)} to hit layer {layer.name}, it missed; '
                'move the origin'
            )
        corners = self.surface.faces[hits.face[0]]
        row = self.surface.base_weights[corners].T @ hits.weights[0]
        self.add_vertices(name, row)

    def front(self, name: str, x: float, z: float) -> None:
        """Add the skin point that a viewer from the front sees at (x, z)."""
        self.surface_point(name, [x, -0.6, z], [0, 1, 0])

    def add_vertices(self, name: str, row: np.ndarray) -> None:
        """Add a weighted sum of base mesh vertices; tiny weights are dropped."""
        row = np.asarray(row, np.float64)
        vertices = np.nonzero(row > 2e-3 * row.max())[0]
        weights = row[vertices] / row[vertices].sum()
        self.entries[name] = {
            'vertices': vertices.tolist(),
            'weights': [round(float(w), 6) for w in weights],
        }

    def add_mirrored(self, name: str, source: str) -> None:
        """Add the mirror image of a point that is a sum of vertices."""
        entry = self.entries[source]
        vertices = self.surface.mirror[entry['vertices']].tolist()
        self.entries[name] = {'vertices': vertices, 'weights': entry['weights']}

    def add_bone(self, name: str, bone: str, end: str = 'head') -> None:
        """Add a bone's head or tail."""
        self.entries[name] = {'bone': bone, 'end': end}


def _add_body(layout: Layout) -> None:
    from anny.paths import get_anny_root_dir

    joint = layout.surface.body.joint
    regressors = torch.load(
        get_anny_root_dir() / 'data' / 'keypoints' / 'coco.pth', weights_only=True
    )
    for name, row in regressors.items():
        layout.add_vertices(name, row.numpy())
    layout.add_bone('neck', 'neck01')
    for side, letter in (('left', 'L'), ('right', 'R')):
        for name, bone in _JOINTS.items():  # replaces the regressed joints
            layout.add_bone(f'{side}_{name}', f'{bone}.{letter}')
        for i, finger in enumerate(_FINGERS, 1):
            name = f'{side}_{finger}'
            layout.add_bone(f'{name}_third_joint', f'finger{i}-1.{letter}')
            layout.add_bone(f'{name}2', f'finger{i}-2.{letter}')
            layout.add_bone(f'{name}3', f'finger{i}-3.{letter}')
            layout.add_bone(f'{name}4', f'finger{i}-3.{letter}', 'tail')
        shoulder, elbow, wrist = (
            joint(f'{bone}.{letter}') for bone in ('upperarm01', 'lowerarm01', 'wrist')
        )
        upper, lower = elbow - shoulder, wrist - elbow
        inwards = lower / np.linalg.norm(lower) - upper / np.linalg.norm(upper)
        inwards /= np.linalg.norm(inwards)  # towards the inside of the bend
        layout.surface_point(f'{side}_olecranon', elbow, -inwards)
        layout.surface_point(f'{side}_cubital_fossa', elbow, inwards)
        layout.surface_point(f'{side}_acromion', shoulder, [0, 0, 1])


def build_table(surface: Surface, names: list[str]) -> dict:
    """The content of ``keypoint_table.json``.

    Args:
        surface: the canonical render mesh.
        names: the 308 names by id.

    Raises:
        ValueError: if a name is not covered by the layout.
    """
    layout = Layout(surface)
    _add_body(layout)
    for add in (add_midline, add_mouth, add_nose, add_brows, add_lids, add_eyes):
        add(layout)
    add_ears(layout)
    missing = [name for name in names if name not in layout.entries]
    if missing:
        raise ValueError(
            f'keypoint table: expected an entry for each of {len(names)} names, '
            f'none for {missing}; add them to the layout'
        )
    keypoints = [
        {'id': i, 'name': name, **layout.entries[name]} for i, name in enumerate(names)
    ]
    return {
        '_about': _ABOUT,
        'lip_split': round(layout.lip_split, 6),
        'keypoints': keypoints,
    }


def write_table(table: dict, path: Path = TABLE_PATH) -> None:
    """Write the table with one keypoint per line."""
    lines = ',\n'.join(json.dumps(entry) for entry in table['keypoints'])
    head = json.dumps({k: v for k, v in table.items() if k != 'keypoints'})
    path.write_text(f'{head[:-1]}, "keypoints": [\n{lines}\n]}}\n')


def main() -> None:
    """Rebuild the table file."""
    write_table(build_table(Surface(BodyModel()), keypoint_names()))


if __name__ == '__main__':
    main()
